// First results that the store could not be told, or did not confirm. Their clients have them, so
// their handlers must not run again when the lease is over: each is reported again, with pauses,
// until the store answers.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "exchange.hpp"

namespace idem::http {

// Thread safe. Reports from a thread of its own, which starts with the first of them.
class Unreported {
 public:
  // What is over these is not kept: its record lapses with its lease.
  static constexpr std::size_t kEntriesMax = 1024;
  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;
  static constexpr Micros kKeptFor = std::chrono::minutes(10);

  explicit Unreported(Clock& clock) : clock_(clock), timers_(clock.timers()) {}
  // Reports once more what is left; stops at the first that the store does not answer.
  ~Unreported();
  Unreported(const Unreported&) = delete;
  Unreported& operator=(const Unreported&) = delete;

  // Whether a report that ended so is worth repeating.
  [[nodiscard]] static bool may_succeed_later(const Error& error);

  void keep(std::unique_ptr<Exchange::State> exchange, std::string result);
  [[nodiscard]] std::size_t size() const;

 private:
  struct Entry {
    std::unique_ptr<Exchange::State> exchange;
    std::string result;
    Time since{};
  };

  void look();
  void schedule();  // with the mutex held
  [[nodiscard]] static bool report(Entry& entry);

  Clock& clock_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<Entry> entries_;
  std::size_t bytes_ = 0;
  std::size_t looked_at_ = 0;  // taken out of entries_ for the time of a report
  Micros pause_{};
  bool over_ = false;
  std::unique_ptr<Timers> timers_;  // last: its work uses everything above
};

}  // namespace idem::http
