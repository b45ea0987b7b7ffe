#include "envelope.hpp"

#include <algorithm>
#include <cstdint>

namespace idem::tiered {
namespace {

constexpr char kFormat = 1;

class Writer {
 public:
  void number(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(value >> shift);
  }
  void time(Time value) { number(static_cast<std::uint64_t>(value.time_since_epoch().count())); }
  template <std::size_t N>
  void bytes(const std::array<std::uint8_t, N>& value) {
    bytes_.append(reinterpret_cast<const char*>(value.data()), N);
  }
  void byte(char value) { bytes_ += value; }
  void rest(std::string_view value) { bytes_ += value; }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    const std::string_view part = take(8);
    for (std::size_t i = 0; i < part.size(); ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(part[i])} << (8 * i);
    }
    return value;
  }
  Time time() { return Time(Micros(static_cast<std::int64_t>(number()))); }
  template <std::size_t N>
  void bytes(std::array<std::uint8_t, N>& to) {
    const std::string_view part = take(N);
    std::copy(part.begin(), part.end(), to.begin());
  }
  char byte() {
    const std::string_view part = take(1);
    return part.empty() ? '\0' : part[0];
  }
  [[nodiscard]] std::string_view rest() const { return left_; }
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  std::string_view take(std::size_t size) {
    complete_ = complete_ && left_.size() >= size;
    const std::string_view part = complete_ ? left_.substr(0, size) : std::string_view();
    left_.remove_prefix(part.size());
    return part;
  }
  std::string_view left_;
  bool complete_ = true;
};

}  // namespace

std::string pack(const Record& record, Time back_now) {
  Writer out;
  out.byte(kFormat);
  out.time(back_now);
  out.bytes(record.request_hash.bytes);
  out.bytes(record.owner.bytes);
  out.number(record.version);
  out.number(record.fence);
  out.number(record.attempt);
  out.byte(static_cast<char>(record.status));
  out.byte(static_cast<char>(record.fail_kind));
  out.byte(record.tombstone ? 1 : 0);
  for (const Time time : {record.lease_until, record.retry_at, record.create_time,
                          record.update_time, record.expires_at}) {
    out.time(time);
  }
  out.rest(record.result);
  return out.take();
}

std::optional<Envelope> unpack(std::string_view bytes) {
  Reader in(bytes);
  if (in.byte() != kFormat) return std::nullopt;
  Envelope envelope;
  envelope.back_now = in.time();
  Record& record = envelope.record;
  in.bytes(record.request_hash.bytes);
  in.bytes(record.owner.bytes);
  record.version = in.number();
  record.fence = in.number();
  record.attempt = static_cast<std::uint32_t>(in.number());
  record.status = static_cast<Status>(in.byte());
  record.fail_kind = static_cast<FailKind>(in.byte());
  record.tombstone = in.byte() != 0;
  for (Time* time : {&record.lease_until, &record.retry_at, &record.create_time,
                     &record.update_time, &record.expires_at}) {
    *time = in.time();
  }
  record.result = in.rest();
  if (!in.complete() || !damage_of(record).empty()) return std::nullopt;
  return envelope;
}

}  // namespace idem::tiered
