// Calls that may block for the store, awaited without blocking the thread that moves bytes.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <type_traits>

namespace idem::serve {

// Thread safe. threads 0: the store is in this process and answers at once, calls run in place.
class StoreCalls {
 public:
  explicit StoreCalls(std::size_t threads) {
    if (threads > 0) pool_ = std::make_unique<boost::asio::thread_pool>(threads);
  }

  // Runs `call`; the coroutine goes on where it was. `call` lives in the caller's frame.
  template <class Call>
  boost::asio::awaitable<std::invoke_result_t<Call&>> run(Call& call) {
    if (!pool_) co_return call();
    co_return co_await boost::asio::co_spawn(
        *pool_,
        [&call]() -> boost::asio::awaitable<std::invoke_result_t<Call&>> { co_return call(); },
        boost::asio::use_awaitable);
  }

  // Waits for the calls under way.
  void join() {
    if (pool_) pool_->join();
  }

 private:
  std::unique_ptr<boost::asio::thread_pool> pool_;
};

}  // namespace idem::serve
