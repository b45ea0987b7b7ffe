// Duplicates waiting for the end of a running first request: no thread each, one reader per key.
//
// Whoever waits longest on a key reads the store at growing intervals (about 14 reads in the first
// 2 s), for all. What ends in this process calls them at once.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "idem/service.hpp"
#include "store_calls.hpp"

namespace idem::serve {

// Thread safe. Every coroutine in wait() runs on a single-threaded executor.
class WaitRoom {
 public:
  WaitRoom(IdempotencyService& service, StoreCalls& store) : service_(service), store_(store) {}

  // Returns when the key's state may have changed, or at `deadline` (of the service's clock).
  boost::asio::awaitable<void> wait(const Request& request, Time deadline);

  // The key's state has changed: everybody who waits for it looks again.
  void call(const Key& key);

 private:
  struct Seat {
    explicit Seat(const boost::asio::any_io_executor& executor) : timer(executor) {}
    boost::asio::steady_timer timer;  // used on its own executor only
    bool leads = false;               // reads for all. Guarded by mutex_, as `called`
    bool called = false;
  };
  using Seats = std::list<std::shared_ptr<Seat>>;

  boost::asio::awaitable<bool> has_changed(const Request& request);
  static void wake(const std::shared_ptr<Seat>& seat);
  void leave(const Key& key, const std::shared_ptr<Seat>& seat);

  IdempotencyService& service_;
  StoreCalls& store_;
  std::mutex mutex_;
  std::map<Key, Seats> rooms_;
};

}  // namespace idem::serve
