#include "unreported.hpp"

#include <algorithm>

namespace idem::http {
namespace {

constexpr Micros kPauseMin = std::chrono::milliseconds(100);
constexpr Micros kPauseMax = std::chrono::seconds(5);

}  // namespace

Unreported::~Unreported() {
  {
    const std::lock_guard guard(mutex_);
    over_ = true;
  }
  timers_.reset();
  for (Entry& entry : entries_) {
    if (!report(entry)) break;
  }
}

bool Unreported::may_succeed_later(const Error& error) {
  return error.code == errc::unknown || error.code == errc::unavailable ||
         error.code == errc::busy || error.code == errc::capacity;
}

void Unreported::keep(std::unique_ptr<Exchange::State> exchange, std::string result) {
  const std::lock_guard guard(mutex_);
  if (entries_.size() + looked_at_ >= kEntriesMax || bytes_ + result.size() > kBytesMax) return;
  bytes_ += result.size();
  entries_.push_back({std::move(exchange), std::move(result), clock_.now()});
  if (entries_.size() + looked_at_ > 1) return;  // it is being looked after
  pause_ = kPauseMin;
  schedule();
}

std::size_t Unreported::size() const {
  const std::lock_guard guard(mutex_);
  return entries_.size() + looked_at_;
}

// Every one in turn, until one finds the store away.
void Unreported::look() {
  for (;;) {
    Entry entry;
    {
      const std::lock_guard guard(mutex_);
      if (over_ || entries_.empty()) return;
      entry = std::move(entries_.front());
      entries_.pop_front();
      looked_at_ = 1;
    }
    const bool told = report(entry);
    const std::lock_guard guard(mutex_);
    looked_at_ = 0;
    if (told || clock_.now() - entry.since >= kKeptFor) {
      bytes_ -= entry.result.size();
      pause_ = kPauseMin;
      continue;
    }
    entries_.push_back(std::move(entry));
    pause_ = std::min(pause_ * 2, kPauseMax);
    if (!over_) schedule();
    return;
  }
}

void Unreported::schedule() {
  timers_->call_at(clock_.now() + pause_, [this] { look(); });
}

bool Unreported::report(Entry& entry) {
  const auto done = entry.exchange->complete(entry.result);
  return done || !may_succeed_later(done.error());
}

}  // namespace idem::http
