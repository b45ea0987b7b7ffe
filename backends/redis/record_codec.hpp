// How a record looks as a Redis string. Pure code: no I/O, no clock, nothing allocated that the
// bytes do not hold.
//
// Layout, all numbers little-endian, times in µs since 1970, lengths in µs:
//
//   offset  bytes
//        0      3  "IR2": a record of format 2 ("IT1": a floor, see below)
//        3     32  head: now, version, create_time, expires_at; by the server's script
//       35     16  tag: first 16 hex digits of SHA-1(head, digest); by the server's script
//       51      8  digest: 64 bits of XXH3 over storage name, tail and result
//       59     80  tail: status, fail_kind, flags, 0, attempt (4), fence (8; 0: the version),
//                  lease (8), retry_after (8), owner (16), request_hash (32)
//      139      …  result
//
// The client knows neither the server's time nor the old version, so the server's script writes
// the head and binds it to the digest; the digest binds the tail to the key. Any changed bit shows.
// It is no proof against whoever may write to the server, who can write a whole record, too.
//
// A floor is what a removed record leaves for a while: "IT1" and the last version (8 bytes). The
// next record of that key gets a higher one even if the server's clock stood still or went back.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "idem/error.hpp"
#include "idem/record.hpp"
#include "idem/store.hpp"

namespace idem::redis {

inline constexpr std::string_view kRecordMark = "IR2";
inline constexpr std::string_view kFloorMark = "IT1";
inline constexpr std::size_t kHeadAt = 3;
inline constexpr std::size_t kHeadBytes = 32;
inline constexpr std::size_t kDigestAt = 51;
inline constexpr std::size_t kTailAt = 59;
inline constexpr std::size_t kResultAt = 139;

// What the server's script decides upon.
struct Head {
  Time now{};
  std::uint64_t version = 0;
  Time create_time{};
  Time expires_at{};
};

// digest, tail and result of a draft: what goes to the server.
[[nodiscard]] std::string encode_body(std::string_view storage_name, const Draft& draft);

[[nodiscard]] result<Head> decode_head(std::string_view bytes);

// Appends the stored string of a head and a draft: what the script makes of them.
void append_record(std::string& out, const Head& head, std::string_view storage_name,
                   const Draft& draft);
[[nodiscard]] inline std::size_t record_bytes(const Draft& draft) {
  return kResultAt + draft.result.size();
}

// A stored string without its result, or the first kResultAt bytes of one: the record with an empty
// result. errc::corrupt if it is none or its head was changed; whether the rest was is seen only
// with the result, by decode_record().
[[nodiscard]] result<Record> decode_header(std::string_view stored);

// errc::corrupt if any bit is not as it was written under this name.
[[nodiscard]] result<Record> decode_record(std::string_view storage_name, std::string_view stored);

// Whether these bytes are what a removed record has left.
[[nodiscard]] bool is_floor(std::string_view stored);

// The record that a written draft has become.
[[nodiscard]] Record record_of(const Draft& draft, const Head& head);
void record_of(const Draft& draft, const Head& head, Record& record);

}  // namespace idem::redis
