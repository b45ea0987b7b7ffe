// The scripts that run inside the server: the only place where a record changes.
//
// Each works on one key (so a cluster runs it where the key is), takes the server's own time, and
// answers with one string: a letter, the time (8 bytes, little-endian), and what belongs to it.
//
//   'W' head     written; for remove and sweep without a head
//   'S' stored   not done, and this stands there
//   'A'          not done, nothing is there
#pragma once

#include <string>
#include <string_view>

namespace idem::redis {

struct Script {
  explicit Script(std::string source);
  std::string text;
  std::string sha1;  // 40 hexadecimal digits: what EVALSHA wants
  bool writes = true;
};

// ARGV of all: [1] "" for the server's time, or "@" and a virtual clock's now in µs.
struct Scripts {
  Script insert;   // [2] px, [3] keep in µs, [4] body
  Script replace;  // [2] px, [3] keep in µs, [4] body, [5] expected version, [6] "1" if fresh
  Script load;
  Script remove;  // [2] floor px, [3] expected version
  Script sweep;   // [2] floor px: remove if past expires_at
  Script peek;    // [2] bytes: 'S', then the record's length (8 bytes) and the record, without its
                  // result if it is longer than that
};

[[nodiscard]] const Scripts& scripts();

}  // namespace idem::redis
