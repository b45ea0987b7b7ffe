// What a caller and the thread of the connections share: a request on its way and its replies.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "idem/error.hpp"
#include "idem/time.hpp"
#include "resp.hpp"

namespace idem::redis {

// Where a caller waits for the exchanges of one round, one per connection it asks.
struct Gathering {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t pending = 0;  // exchanges without an end
};

// A pipeline of commands that go out together on one connection. Lives until its replies came or
// its connection ended, also if its caller has given up on it: a late reply finds its own question.
class Exchange {
 public:
  Exchange(std::shared_ptr<Gathering> gathering, std::string payload, std::size_t commands)
      : payload_(std::move(payload)), commands_(commands), gathering_(std::move(gathering)) {}

  // --- the caller ---

  // True: it will never be sent. False: it was, or may have been.
  bool withdraw() {
    State queued = State::queued;
    return state_.compare_exchange_strong(queued, State::withdrawn);
  }
  // After withdraw() failed: nobody waits for the replies any more.
  void abandon() { abandoned_.store(true); }
  // Only after Gathering::pending went to 0, or with the gathering locked and done() true.
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] const Error& error() const { return error_; }  // errc{}: all replies are there
  [[nodiscard]] std::vector<Reply>& replies() { return replies_; }

  // --- the thread of the connections ---

  [[nodiscard]] const std::string& payload() const { return payload_; }
  [[nodiscard]] bool withdrawn() const { return state_.load() == State::withdrawn; }
  [[nodiscard]] bool abandoned() const { return abandoned_.load(); }
  // False: withdrawn.
  bool send() {
    State queued = State::queued;
    return state_.compare_exchange_strong(queued, State::sent);
  }
  // True: that was the last one.
  bool take(Reply reply) {
    replies_.push_back(std::move(reply));
    return replies_.size() == commands_;
  }
  void finish(Error error = {}) {
    {
      const std::lock_guard guard(gathering_->mutex);
      error_ = std::move(error);
      done_ = true;
      --gathering_->pending;
    }
    gathering_->changed.notify_one();  // only the caller waits there
  }

 private:
  enum class State : std::uint8_t { queued, sent, withdrawn };
  std::atomic<State> state_{State::queued};
  std::atomic<bool> abandoned_{false};
  std::string payload_;
  std::size_t commands_;
  std::vector<Reply> replies_;
  Error error_{};
  bool done_ = false;
  std::shared_ptr<Gathering> gathering_;
};

using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace idem::redis
