#include "record_codec.hpp"

#include <openssl/evp.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

namespace idem::redis {
namespace {

constexpr std::size_t kDigestBytes = 8;
constexpr std::size_t kTagAt = kHeadAt + kHeadBytes;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kTailBytes = kResultAt - kTailAt;
constexpr std::uint16_t kTombstoneFlag = 1;

// Made ready once per thread: fetching the algorithm and making a context cost more than hashing a
// record.
class Sha1 {
 public:
  using Hash = std::array<unsigned char, EVP_MAX_MD_SIZE>;

  Sha1() : kind_(EVP_MD_fetch(nullptr, "SHA1", nullptr)), context_(EVP_MD_CTX_new()) {}
  Sha1(const Sha1&) = delete;
  Sha1& operator=(const Sha1&) = delete;
  ~Sha1() {
    EVP_MD_CTX_free(context_);
    EVP_MD_free(kind_);
  }

  // Good until the next call.
  const Hash& operator()(std::initializer_list<std::string_view> parts) {
    EVP_DigestInit_ex(context_, kind_, nullptr);
    for (const std::string_view part : parts) {
      EVP_DigestUpdate(context_, part.data(), part.size());
    }
    EVP_DigestFinal_ex(context_, hash_.data(), nullptr);
    return hash_;
  }

 private:
  EVP_MD* kind_;
  EVP_MD_CTX* context_;
  Hash hash_{};
};

using Digest = std::array<char, kDigestBytes>;
using Tag = std::array<char, kTagBytes>;

template <std::size_t N>
std::string_view view(const std::array<char, N>& bytes) {
  return {bytes.data(), bytes.size()};
}

// Fills bytes from their front.
class Writer {
 public:
  explicit Writer(char* out) : at_(out) {}
  template <class Unsigned>
  void put(Unsigned value) {
    for (std::size_t i = 0; i < sizeof(value); ++i) {
      *at_++ = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
    }
  }
  void put(Micros value) { put(static_cast<std::uint64_t>(value.count())); }
  void put(Time value) { put(value.time_since_epoch()); }
  template <std::size_t M>
  void put(const std::array<std::uint8_t, M>& bytes) {
    at_ = std::copy(bytes.begin(), bytes.end(), at_);
  }
  void put(std::string_view bytes) { at_ = std::copy(bytes.begin(), bytes.end(), at_); }

 private:
  char* at_;
};

// Each part's hash is the seed of the next one's, so no byte can change to another part.
Digest digest_of(std::string_view storage_name, std::string_view tail, std::string_view result) {
  std::uint64_t hash = 0;
  for (const std::string_view part : {storage_name, tail, result}) {
    hash = XXH3_64bits_withSeed(part.data(), part.size(), hash);
  }
  Digest digest;
  Writer(digest.data()).put(hash);
  return digest;
}

Tag tag_of(std::string_view head, std::string_view digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  thread_local Sha1 sha1;
  const Sha1::Hash& hash = sha1({head, digest});
  Tag tag;
  for (std::size_t i = 0; i < kTagBytes / 2; ++i) {
    tag[2 * i] = kDigits[hash[i] >> 4];
    tag[2 * i + 1] = kDigits[hash[i] & 15];
  }
  return tag;
}

using Tail = std::array<char, kTailBytes>;

Tail tail_of(const Draft& draft) {
  Tail tail;
  Writer writer(tail.data());
  writer.put(static_cast<std::uint8_t>(draft.status));
  writer.put(static_cast<std::uint8_t>(draft.fail_kind));
  writer.put(static_cast<std::uint16_t>(draft.tombstone ? kTombstoneFlag : 0));
  writer.put(draft.attempt);
  writer.put(draft.fence);
  writer.put(draft.status == Status::processing ? draft.lease : Micros(0));
  writer.put(draft.status == Status::failed ? draft.retry_after : Micros(0));
  writer.put(draft.owner.bytes);
  writer.put(draft.request_hash.bytes);
  return tail;
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
  const Tail tail = tail_of(draft);
  std::string body;
  body.reserve(kDigestBytes + kTailBytes + draft.result.size());
  body += view(digest_of(storage_name, view(tail), draft.result));
  body += view(tail);
  body += draft.result;
  return body;
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

void append_record(std::string& out, const Head& head, std::string_view storage_name,
                   const Draft& draft) {
  std::array<char, kResultAt> bytes;
  Writer writer(bytes.data());
  writer.put(kRecordMark);
  writer.put(head.now);
  writer.put(head.version);
  writer.put(head.create_time);
  writer.put(head.expires_at);
  const Tail tail = tail_of(draft);
  const Digest digest = digest_of(storage_name, view(tail), draft.result);
  writer.put(view(tag_of({bytes.data() + kHeadAt, kHeadBytes}, view(digest))));
  writer.put(view(digest));
  writer.put(view(tail));
  out += view(bytes);
  out += draft.result;
}

result<Record> decode_header(std::string_view stored) {
  if (stored.size() < kResultAt) return corrupt("it is too short");
  if (!stored.starts_with(kRecordMark))
    return corrupt("it has a format of another version of idem, or is none");
  const std::string_view digest = stored.substr(kDigestAt, kDigestBytes);
  const std::string_view head_bytes = stored.substr(kHeadAt, kHeadBytes);
  if (stored.substr(kTagAt, kTagBytes) != view(tag_of(head_bytes, digest))) {
    return corrupt("its head was changed");
  }
  const auto head = decode_head(head_bytes);
  if (!head) return head.error();

  Reader in(stored.substr(kTailAt, kTailBytes));
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
  Record record = record_of(draft, *head);
  if (const std::string_view damage = damage_of(record); !damage.empty()) return corrupt(damage);
  return record;
}

result<Record> decode_record(std::string_view storage_name, std::string_view stored) {
  auto record = decode_header(stored);
  if (!record) return record;
  const std::string_view result = stored.substr(kResultAt);
  if (stored.substr(kDigestAt, kDigestBytes) !=
      view(digest_of(storage_name, stored.substr(kTailAt, kTailBytes), result))) {
    return corrupt("it was changed, or written under another key");
  }
  record->result = result;
  return record;
}

bool is_floor(std::string_view stored) {
  return stored.size() == kFloorMark.size() + sizeof(std::uint64_t) &&
         stored.starts_with(kFloorMark);
}

Record record_of(const Draft& draft, const Head& head) {
  Record record;
  record_of(draft, head, record);
  return record;
}

void record_of(const Draft& draft, const Head& head, Record& record) {
  idem::record_of(draft, head.version, head.now, head.create_time, record);
  record.expires_at = head.expires_at;
}

}  // namespace idem::redis
