// The event loop of the connections, run by whoever waits for a reply: there is no thread of the
// store's own, so a caller that is alone reads its replies itself, and of many callers one reads
// for all.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/intrusive/list.hpp>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "idem/time.hpp"

namespace idem::redis {

// Where a caller waits for the exchanges of one round, one per connection it asks.
struct Gathering : boost::intrusive::list_base_hook<> {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t pending = 0;  // exchanges without an end
  std::size_t enough = 0;   // the caller goes on when no more than these are pending
  bool leads = false;       // the loop was handed to its caller

  [[nodiscard]] bool over() const { return pending <= enough; }
};

// Thread safe. Handlers run in one thread at a time; none runs while nobody waits.
class Loop {
 public:
  [[nodiscard]] boost::asio::io_context& io() { return io_; }

  // Returns when no more than `enough` of the gathering's exchanges are pending, or at the deadline
  // (of system_clock()). Runs the loop meanwhile, unless another caller does.
  void wait(Gathering& gathering, std::size_t enough, Time deadline);

 private:
  void follow(Gathering& gathering, Time deadline);
  void lead(Gathering& gathering, Time deadline);
  void hand_over();

  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_running_{
      io_.get_executor()};

  std::mutex mutex_;                             // before a Gathering's
  bool led_ = false;                             // somebody runs the loop, or was told to
  boost::intrusive::list<Gathering> following_;  // callers that wait while another leads
};

}  // namespace idem::redis
