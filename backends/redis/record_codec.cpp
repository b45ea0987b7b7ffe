#include "record_codec.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace idem::redis {
namespace {

constexpr std::size_t kDigestBytes = 8;
constexpr std::size_t kTagAt = kHeadAt + kHeadBytes;
constexpr std::size_t kTagBytes = 16;
constexpr char kTombstoneFlag = 1;

using Hash = std::array<unsigned char, EVP_MAX_MD_SIZE>;

Hash hash_of(const EVP_MD* kind, std::string_view first, std::string_view second) {
  // Fetching an algorithm and making a context cost more than hashing a record.
  thread_local const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                                EVP_MD_CTX_free);
  Hash hash{};
  EVP_DigestInit_ex(context.get(), kind, nullptr);
  EVP_DigestUpdate(context.get(), first.data(), first.size());
  EVP_DigestUpdate(context.get(), second.data(), second.size());
  EVP_DigestFinal_ex(context.get(), hash.data(), nullptr);
  return hash;
}

std::string digest_of(std::string_view storage_name, std::string_view tail_and_result) {
  // The tail has a fixed length and a name does not end early: its length in front keeps them
  // apart.
  const std::string name = std::to_string(storage_name.size()) + ":" + std::string(storage_name);
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  const Hash hash = hash_of(sha256, name, tail_and_result);
  return {reinterpret_cast<const char*>(hash.data()), kDigestBytes};
}

std::string tag_of(std::string_view head, std::string_view digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  static const EVP_MD* const sha1 = EVP_MD_fetch(nullptr, "SHA1", nullptr);
  const Hash hash = hash_of(sha1, head, digest);
  std::string tag;
  for (std::size_t i = 0; i < kTagBytes / 2; ++i) {
    tag += kDigits[hash[i] >> 4];
    tag += kDigits[hash[i] & 15];
  }
  return tag;
}

template <class Unsigned>
void put(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(value); ++i) {
    out += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  }
}

void put_micros(std::string& out, Micros value) {
  put(out, static_cast<std::uint64_t>(value.count()));
}

// Takes fields off the front of bytes whose length was checked.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class Unsigned>
  Unsigned take() {
    Unsigned value = 0;
    for (std::size_t i = 0; i < sizeof(value); ++i) {
      value = static_cast<Unsigned>(
          value | static_cast<Unsigned>(static_cast<Unsigned>(static_cast<unsigned char>(bytes_[i]))
                                        << (8 * i)));
    }
    bytes_.remove_prefix(sizeof(value));
    return value;
  }
  Micros micros() { return Micros(static_cast<std::int64_t>(take<std::uint64_t>())); }
  Time time() { return Time(micros()); }
  template <std::size_t N>
  void bytes(std::array<std::uint8_t, N>& out) {
    std::memcpy(out.data(), bytes_.data(), N);
    bytes_.remove_prefix(N);
  }

 private:
  std::string_view bytes_;
};

Error corrupt(std::string_view what) {
  return idem::fail(errc::corrupt, "the stored record cannot be trusted: " + std::string(what));
}

}  // namespace

std::string encode_body(std::string_view storage_name, const Draft& draft) {
  std::string body(kDigestBytes, '\0');
  body.reserve(kResultAt - kDigestAt + draft.result.size());
  body += static_cast<char>(draft.status);
  body += static_cast<char>(draft.fail_kind);
  body += draft.tombstone ? kTombstoneFlag : '\0';
  body += '\0';
  put(body, draft.attempt);
  put(body, draft.fence);
  put_micros(body, draft.status == Status::processing ? draft.lease : Micros(0));
  put_micros(body, draft.status == Status::failed ? draft.retry_after : Micros(0));
  body.append(reinterpret_cast<const char*>(draft.owner.bytes.data()), draft.owner.bytes.size());
  body.append(reinterpret_cast<const char*>(draft.request_hash.bytes.data()),
              draft.request_hash.bytes.size());
  body += draft.result;
  const std::string digest = digest_of(storage_name, std::string_view(body).substr(kDigestBytes));
  std::copy(digest.begin(), digest.end(), body.begin());
  return body;
}

std::string encode_head(const Head& head) {
  std::string bytes;
  put_micros(bytes, head.now.time_since_epoch());
  put(bytes, head.version);
  put_micros(bytes, head.create_time.time_since_epoch());
  put_micros(bytes, head.expires_at.time_since_epoch());
  return bytes;
}

result<Head> decode_head(std::string_view bytes) {
  if (bytes.size() != kHeadBytes) return corrupt("a head of the wrong length");
  Reader in(bytes);
  Head head;
  head.now = in.time();
  head.version = in.take<std::uint64_t>();
  head.create_time = in.time();
  head.expires_at = in.time();
  return head;
}

std::string encode_record(std::string_view head, std::string_view body) {
  std::string stored(kRecordMark);
  stored += head;
  stored += tag_of(head, body.substr(0, kDigestBytes));
  stored += body;
  return stored;
}

result<Record> decode_record(std::string_view storage_name, std::string_view stored) {
  if (stored.size() < kResultAt) return corrupt("it is too short");
  if (stored.substr(0, kRecordMark.size()) != kRecordMark) return corrupt("it has another format");
  const std::string_view digest = stored.substr(kDigestAt, kDigestBytes);
  const std::string_view head_bytes = stored.substr(kHeadAt, kHeadBytes);
  if (stored.substr(kTagAt, kTagBytes) != tag_of(head_bytes, digest)) {
    return corrupt("its head was changed");
  }
  if (digest != digest_of(storage_name, stored.substr(kTailAt))) {
    return corrupt("it was changed, or written under another key");
  }
  const auto head = decode_head(head_bytes);
  if (!head) return head.error();

  Reader in(stored.substr(kTailAt));
  Draft draft;
  const auto status = in.take<std::uint8_t>();
  const auto fail_kind = in.take<std::uint8_t>();
  const auto flags = in.take<std::uint16_t>();
  if (status > static_cast<std::uint8_t>(Status::failed) ||
      fail_kind > static_cast<std::uint8_t>(FailKind::abandoned) || flags > kTombstoneFlag) {
    return corrupt("a field has a value that nobody writes");
  }
  draft.status = static_cast<Status>(status);
  draft.fail_kind = static_cast<FailKind>(fail_kind);
  draft.tombstone = flags == kTombstoneFlag;
  draft.attempt = in.take<std::uint32_t>();
  draft.fence = in.take<std::uint64_t>();
  draft.lease = in.micros();
  draft.retry_after = in.micros();
  in.bytes(draft.owner.bytes);
  in.bytes(draft.request_hash.bytes);
  draft.result = stored.substr(kResultAt);
  Record record = record_of(draft, *head);
  if (const std::string_view damage = damage_of(record); !damage.empty()) return corrupt(damage);
  return record;
}

bool is_floor(std::string_view stored) {
  return stored.size() == kFloorMark.size() + sizeof(std::uint64_t) &&
         stored.starts_with(kFloorMark);
}

Record record_of(const Draft& draft, const Head& head) {
  Record record;
  record.request_hash = draft.request_hash;
  record.owner = draft.owner;
  record.version = head.version;
  record.fence = draft.fence == 0 ? head.version : draft.fence;
  record.attempt = draft.attempt;
  record.status = draft.status;
  record.fail_kind = draft.fail_kind;
  record.tombstone = draft.tombstone;
  if (draft.status == Status::processing) record.lease_until = head.now + draft.lease;
  if (draft.status == Status::failed) record.retry_at = head.now + draft.retry_after;
  record.create_time = head.create_time;
  record.update_time = head.now;
  record.expires_at = head.expires_at;
  record.result = draft.result;
  return record;
}

}  // namespace idem::redis
