// Options that say which request a key stands for, and with which policy it is claimed.
#pragma once

#include "options.hpp"

namespace idem::cli {

struct RequestOptions {
  std::string text;
  std::string file;
  std::string hash;
  bool canonical = false;
};
void add_request(CLI::App* app, RequestOptions& into);
// The SHA-256 of the request; of nothing if none was given.
[[nodiscard]] Fingerprint fingerprint_of(const RequestOptions& options);

struct PolicyOptions {
  std::optional<Duration> lease;
  std::optional<std::uint64_t> max_attempts;
  std::string on_lapsed;
  bool no_retry = false;
};
void add_policy(CLI::App* app, PolicyOptions& into);
[[nodiscard]] PolicyPatch patch_of(const PolicyOptions& options);

// Text given on the line, or the content of a file.
struct BytesOptions {
  std::string text;
  std::string file;
  [[nodiscard]] std::string value() const { return file.empty() ? text : read_file(file); }
};
// --NAME TEXT and --NAME-file FILE
void add_bytes(CLI::App* app, const std::string& name, BytesOptions& into, const std::string& help);

// The token that claim printed: --owner and --fence, or IDEM_OWNER and IDEM_FENCE.
struct TokenOptions {
  std::string owner;
  std::string fence;
};
void add_token(CLI::App* app, TokenOptions& into);
[[nodiscard]] Token token_of(const TokenOptions& options);

}  // namespace idem::cli
