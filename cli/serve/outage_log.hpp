// Says on the standard error that the store does not answer, and that it answers again: once each,
// however many requests meet it. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "idem/observer.hpp"

namespace idem::serve {

class OutageLog final : public Observer {
 public:
  using Sink = std::function<void(const std::string& line)>;
  explicit OutageLog(Sink sink) : sink_(std::move(sink)) {}

  void on_error(std::string_view verb, KeyRef, const Error& error) noexcept override {
    if (!is_outage(error.code) || out_.exchange(true)) return;
    tell("the store fails (" + std::string(verb) + "): " + error.message +
         "; claims are answered 503 until it works again");
  }
  void on_claimed(KeyRef, const Granted&) noexcept override {
    if (out_.load(std::memory_order_relaxed) && out_.exchange(false)) tell("the store works again");
  }

 private:
  // Of the store, and not of one call or one record.
  static bool is_outage(errc code) {
    return code == errc::unavailable || code == errc::unknown || code == errc::capacity ||
           code == errc::read_only || code == errc::cannot_open || code == errc::denied;
  }
  void tell(const std::string& line) noexcept {
    try {
      sink_(line);
    } catch (...) {  // a log that cannot be written stops no request
    }
  }

  const Sink sink_;
  std::atomic<bool> out_{false};
};

}  // namespace idem::serve
