// What a caller and whoever runs the loop share: a request on its way and its replies.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "idem/error.hpp"
#include "idem/time.hpp"
#include "loop.hpp"
#include "resp.hpp"

namespace idem::redis {

// What is asked behind an exchange's commands, once for all exchanges of a write that want it.
struct Behind {
  bool time = false;         // the server's clock
  std::uint32_t copies = 0;  // replicas that must confirm, 0: none asked
  Micros copies_limit{};     // how long the server may wait for them
};

// A pipeline of commands that go out together on one connection. Lives until its replies came or
// its connection ended, also if its caller has given up on it: a late reply finds its own question.
class Exchange {
 public:
  Exchange(std::shared_ptr<Gathering> gathering, std::string payload, std::size_t commands,
           Behind behind = {})
      : behind_(behind),
        payload_(std::move(payload)),
        commands_(commands),
        gathering_(std::move(gathering)) {
    replies_.reserve(commands);
  }

  [[nodiscard]] const Behind& behind() const { return behind_; }

  // --- the caller ---

  // True: it will never be sent. False: it was, or may have been.
  bool withdraw() {
    State queued = State::queued;
    return state_.compare_exchange_strong(queued, State::withdrawn);
  }
  // After withdraw() failed: nobody waits for the replies any more.
  void abandon() { abandoned_.store(true); }
  // Only with the gathering locked.
  [[nodiscard]] bool done() const { return done_; }
  // Only once it is done. errc{}: all replies are there.
  [[nodiscard]] const Error& error() const { return error_; }
  [[nodiscard]] std::vector<Reply>& replies() { return replies_; }
  [[nodiscard]] Time served_at() const { return served_at_; }  // Time{}: the server did not tell
  [[nodiscard]] std::int64_t copies() const { return copies_; }

  // --- whoever has the connection locked ---

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
  void take_time(Time served_at) { served_at_ = served_at; }
  void take_copies(std::int64_t copies) { copies_ = copies; }
  // Without that lock: the caller is woken.
  void finish(Error error = {}) {
    const auto gathering = gathering_;
    {
      const std::lock_guard guard(gathering->mutex);
      error_ = std::move(error);
      done_ = true;
      --gathering->pending;
    }
    gathering->changed.notify_one();  // only the caller waits there
  }

 private:
  enum class State : std::uint8_t { queued, sent, withdrawn };
  std::atomic<State> state_{State::queued};
  std::atomic<bool> abandoned_{false};
  const Behind behind_;
  const std::string payload_;
  const std::size_t commands_;
  std::vector<Reply> replies_;
  Time served_at_{};
  std::int64_t copies_ = 0;
  Error error_{};
  bool done_ = false;
  std::shared_ptr<Gathering> gathering_;
};

using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace idem::redis
