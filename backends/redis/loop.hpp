// The event loop of the connections, run by whoever waits for a reply: there is no thread of the
// store's own, so a caller that is alone reads its replies itself, and of many callers one reads
// for all.
//
// Those who do not read sleep. Callers whose requests leave in one write sleep on one bell, so that
// their replies wake them with one call of the system; the first of them sleeps alone: it is the
// next to read, and woken without the others.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <mutex>

#include "idem/park.hpp"
#include "idem/time.hpp"

namespace idem::redis {

// Where a caller waits for the exchanges of one round, one per connection it asks.
class Gathering : public boost::intrusive::list_base_hook<> {
 public:
  explicit Gathering(std::size_t exchanges) : pending_(exchanges) {}

  // Exchanges without an end.
  [[nodiscard]] std::size_t pending() const { return pending_.load(); }
  // Which write its exchange leaves with (Loop::next_write()), before its caller waits; of several
  // connections one. Only a wrong one costs: it wakes for replies that are not its own.
  void leaves_with(std::size_t write) { write_ = write; }

 private:
  friend class Loop;
  friend class Ringing;
  [[nodiscard]] bool over() const { return pending_.load() <= enough_.load(); }

  // Sequentially consistent, all of them: a caller says where it sleeps and then looks whether it
  // has to; whoever ends an exchange says so and then looks who sleeps.
  std::atomic<std::size_t> pending_;
  std::atomic<std::size_t> enough_{0};  // the caller goes on when no more than these are pending
  std::atomic<bool> leads_{false};      // the loop was handed to its caller
  std::atomic<ParkingWord*> bell_{nullptr};  // where it sleeps; nullptr: it does not
  std::size_t write_ = 0;
  ParkingWord own_{0};
};

// Ends exchanges, and wakes the callers that waited for them: those on one bell together, at the
// latest when it is destroyed.
class Ringing {
 public:
  Ringing() = default;
  Ringing(const Ringing&) = delete;
  Ringing& operator=(const Ringing&) = delete;
  ~Ringing() { ring(); }

  // One exchange of the gathering has ended.
  void end_one(Gathering& gathering);

 private:
  void ring();
  ParkingWord* bell_ = nullptr;
};

// Thread safe. Handlers run in one thread at a time; none runs while nobody waits.
class Loop {
 public:
  [[nodiscard]] boost::asio::io_context& io() { return io_; }

  // Returns when no more than `enough` of the gathering's exchanges are pending, or at the deadline
  // (of system_clock()). Runs the loop meanwhile, unless another caller does.
  void wait(Gathering& gathering, std::size_t enough, Time deadline);

  // Counts the writes; relaxed: whoever asks and whoever counts has a connection locked, and of
  // another connection any number will do.
  [[nodiscard]] std::size_t next_write() const { return write_.load(std::memory_order_relaxed); }
  void has_written() { write_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void follow(Gathering& gathering, Time deadline);
  void lead(Gathering& gathering, Time deadline);
  void hand_over();

  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_running_{
      io_.get_executor()};

  struct alignas(64) Bell {
    ParkingWord rung{0};
  };
  std::array<Bell, 8> bells_;  // by write
  std::atomic<std::size_t> write_{0};

  std::mutex mutex_;                             // guards all below
  bool led_ = false;                             // somebody runs the loop, or was told to
  std::size_t first_for_ = ~std::size_t{0};      // the last write whose first sleeper sleeps alone
  boost::intrusive::list<Gathering> following_;  // callers that wait while another leads
};

}  // namespace idem::redis
