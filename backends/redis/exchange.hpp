// What a caller and whoever runs the loop share: a request on its way and its replies.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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

class Exchange;
using ExchangePtr = std::shared_ptr<Exchange>;

// What is known of a pipeline that is one `SET key value NX GET` alone; else both are empty. Parts
// of the payload.
struct Claim {
  std::size_t key_at = 0, key_bytes = 0;
  std::size_t value_at = 0, value_bytes = 0;
};

// A pipeline of commands that go out together on one connection. Lives until its replies came or
// its connection ended, also if its caller has given up on it: a late reply finds its own question.
//
// Riders are claims of the same key that came while this one was not sent. They are answered as if
// each had been sent right behind it, without being sent: that finds what this one found, or what
// it wrote. Every rider's call was under way before the server was asked and is until the answer is
// there, so what it is told was so during its call. Its caller comes and goes by itself.
class Exchange {
 public:
  Exchange(std::shared_ptr<Gathering> gathering, std::string payload, std::size_t commands,
           Behind behind = {}, Claim claim = {})
      : behind_(behind),
        payload_(std::move(payload)),
        commands_(commands),
        claim_(claim),
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
  [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }
  // Only once it is done. errc{}: all replies are there.
  [[nodiscard]] const Error& error() const { return error_; }
  [[nodiscard]] std::vector<Reply>& replies() { return replies_; }
  [[nodiscard]] Time served_at() const { return served_at_; }  // Time{}: the server did not tell
  [[nodiscard]] std::int64_t copies() const { return copies_; }

  // --- whoever has the connection locked ---

  [[nodiscard]] const std::string& payload() const { return payload_; }
  [[nodiscard]] bool withdrawn() const { return state_.load() == State::withdrawn; }
  [[nodiscard]] bool abandoned() const {
    return abandoned_.load() && std::all_of(riders_.begin(), riders_.end(),
                                            [](const auto& rider) { return rider->abandoned(); });
  }
  // The key it claims; empty if it may neither ride nor take riders along.
  [[nodiscard]] std::string_view claimed_key() const {
    return std::string_view(payload_).substr(claim_.key_at, claim_.key_bytes);
  }
  // Called by the caller that submits it.
  void leaves_with(std::size_t write) { gathering_->leaves_with(write); }
  void take_along(ExchangePtr rider) { riders_.push_back(std::move(rider)); }
  // Withdrawn: the first rider that is not, with the others; null if there is none.
  [[nodiscard]] ExchangePtr heir() {
    std::vector<ExchangePtr> riders = std::exchange(riders_, {});
    std::erase_if(riders, [](const ExchangePtr& rider) { return rider->withdrawn(); });
    if (riders.empty()) return nullptr;
    ExchangePtr first = std::move(riders.front());
    riders.erase(riders.begin());
    first->riders_ = std::move(riders);
    return first;
  }
  // False: withdrawn.
  bool send() {
    State queued = State::queued;
    if (!state_.compare_exchange_strong(queued, State::sent)) return false;
    std::erase_if(riders_, [](const ExchangePtr& rider) { return !rider->send(); });
    return true;
  }
  // True: that was the last one.
  bool take(Reply&& reply) {
    for (std::size_t i = 0; i < riders_.size(); ++i) (void)riders_[i]->take(behind_this(reply));
    replies_.push_back(std::move(reply));
    return replies_.size() == commands_;
  }
  void take_time(Time served_at) {
    served_at_ = served_at;
    for (const ExchangePtr& rider : riders_) rider->take_time(served_at);
  }
  void take_copies(std::int64_t copies) {
    copies_ = copies;
    for (const ExchangePtr& rider : riders_) rider->take_copies(copies);
  }
  // Without that lock: the caller is woken.
  void finish(const Error& error, Ringing& ringing) {
    for (const ExchangePtr& rider : std::exchange(riders_, {})) rider->finish(error, ringing);
    const auto gathering = gathering_;
    error_ = error;
    done_.store(true, std::memory_order_release);  // pairs with done()
    ringing.end_one(*gathering);
  }

 private:
  // What the server would answer the same claim right behind the one it answered so.
  [[nodiscard]] Reply behind_this(const Reply& reply) const {
    if (reply.type != Reply::Type::nil) return reply;
    Reply written;
    written.type = Reply::Type::bulk;
    written.text = payload_.substr(claim_.value_at, claim_.value_bytes);
    return written;
  }

  enum class State : std::uint8_t { queued, sent, withdrawn };
  std::atomic<State> state_{State::queued};
  std::atomic<bool> abandoned_{false};
  const Behind behind_;
  const std::string payload_;
  const std::size_t commands_;
  const Claim claim_;
  std::vector<ExchangePtr> riders_;
  std::vector<Reply> replies_;
  Time served_at_{};
  std::int64_t copies_ = 0;
  Error error_{};
  std::atomic<bool> done_{false};
  std::shared_ptr<Gathering> gathering_;
};

}  // namespace idem::redis
