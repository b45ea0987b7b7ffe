// The record as a user of a general table would keep it: 64 bytes, the result on the heap.
#pragma once

#include <cstdlib>

#include "peers/table.hpp"

namespace idem::bench {

struct PeerRecord {
  std::int64_t expires = 0;
  std::uint64_t token = 0;
  char* result = nullptr;    // 64 bytes; owned
  std::uint64_t status = 0;  // 0 processing, 1 success
  std::array<std::uint8_t, 32> fingerprint;

  PeerRecord() = default;
  PeerRecord(std::uint64_t by, std::int64_t until)
      : expires(until), token(by), fingerprint(request_fingerprint()) {}
  PeerRecord(PeerRecord&& other) noexcept { take(other); }
  PeerRecord& operator=(PeerRecord&& other) noexcept {
    if (this != &other) {
      std::free(result);
      take(other);
    }
    return *this;
  }
  PeerRecord(const PeerRecord&) = delete;
  PeerRecord& operator=(const PeerRecord&) = delete;
  ~PeerRecord() { std::free(result); }

  // What a claim of another caller hears. Copies the result out.
  [[nodiscard]] Verdict answer(char* into) const {
    if (fingerprint != request_fingerprint()) return Verdict::mismatch;
    if (status == 0) return Verdict::in_progress;
    std::memcpy(into, result, kResultBytes);
    return Verdict::replayed;
  }
  [[nodiscard]] bool expired(std::int64_t now) const { return now >= expires; }
  void take_over(std::uint64_t by, std::int64_t until) {
    std::free(result);
    result = nullptr;
    status = 0;
    token = by;
    expires = until;
  }
  [[nodiscard]] bool complete(std::uint64_t by, const char* text) {
    if (token != by || status != 0) return false;
    result = static_cast<char*>(std::malloc(kResultBytes));
    result_of(text, result);
    status = 1;
    return true;
  }
  [[nodiscard]] bool replay(char* into) const {
    if (status != 1) return false;
    std::memcpy(into, result, kResultBytes);
    return true;
  }

 private:
  void take(PeerRecord& other) {
    expires = other.expires;
    token = other.token;
    result = other.result;
    status = other.status;
    fingerprint = other.fingerprint;
    other.result = nullptr;
  }
};
static_assert(sizeof(PeerRecord) == 64);

// What each peer's Caller has: the numbers of its own claims, and the buffer for replays.
struct PeerCaller {
  std::uint64_t number = 0;
  std::int64_t keep = 0;
  std::array<char, kResultBytes> replayed{};

  explicit PeerCaller(const Setup& setup) : keep(setup.keep.count()) {
    static std::atomic<std::uint64_t> callers{0};
    number = (callers.fetch_add(1) + 1) << 40;
  }
  [[nodiscard]] static std::int64_t now() { return race_clock().now().time_since_epoch().count(); }
};

}  // namespace idem::bench
