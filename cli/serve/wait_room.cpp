#include "wait_room.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <random>

namespace idem::serve {
namespace {

namespace asio = boost::asio;

constexpr Micros kPauseMin{20'000};
constexpr Micros kPauseMax{250'000};

Micros jittered(Micros pause) {
  thread_local std::minstd_rand random(std::random_device{}());
  std::uniform_int_distribution<std::int64_t> spread(pause.count() * 3 / 4, pause.count() * 5 / 4);
  return Micros(spread(random));
}

}  // namespace

asio::awaitable<void> WaitRoom::wait(const Request& request, Time deadline) {
  const auto seat = std::make_shared<Seat>(co_await asio::this_coro::executor);
  {
    const std::lock_guard guard(mutex_);
    Seats& seats = rooms_[request.key];
    seat->leads = seats.empty();
    seats.push_back(seat);
  }
  Micros pause = kPauseMin;
  bool first = true;
  for (;;) {
    bool leads = false;
    {
      const std::lock_guard guard(mutex_);
      if (seat->called) break;
      leads = seat->leads;
    }
    // A new leader reads first: what ended before it sat down called nobody.
    if (leads && !first) {
      if (co_await has_changed(request)) {
        call(request.key);
        break;
      }
    }
    const Micros left = deadline - service_.clock().now();
    if (left <= Micros(0)) break;
    seat->timer.expires_after(leads ? std::min(left, first ? Micros(1'000) : jittered(pause))
                                    : left);
    if (leads && !first) pause = std::min(pause * 3 / 2, kPauseMax);
    first = false;
    (void)co_await seat->timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  leave(request.key, seat);
}

asio::awaitable<bool> WaitRoom::has_changed(const Request& request) {
  auto read = [&] { return service_.wait(request, Micros(0)); };
  const auto seen = co_await store_.run(read);
  // An error is for the claims that follow to hear.
  co_return !seen || !std::holds_alternative<InProgress>(*seen);
}

void WaitRoom::wake(const std::shared_ptr<Seat>& seat) {
  asio::post(seat->timer.get_executor(), [seat] { seat->timer.cancel(); });
}

void WaitRoom::call(const Key& key) {
  const std::lock_guard guard(mutex_);
  const auto found = rooms_.find(key);
  if (found == rooms_.end()) return;
  for (const auto& seat : found->second) {
    seat->called = true;
    wake(seat);
  }
}

void WaitRoom::leave(const Key& key, const std::shared_ptr<Seat>& seat) {
  const std::lock_guard guard(mutex_);
  const auto found = rooms_.find(key);
  found->second.remove(seat);
  if (found->second.empty()) {
    rooms_.erase(found);
  } else if (seat->leads && !found->second.front()->leads) {
    found->second.front()->leads = true;
    wake(found->second.front());
  }
}

}  // namespace idem::serve
