// An exchange under way: its lease, and the renewals that keep it while the handler runs.
#pragma once

#include <memory>
#include <mutex>

#include "idem/http.hpp"

namespace idem::http {

struct Exchange::State {
  State(std::shared_ptr<IdempotencyService> its_service, Lease its_lease, Timers& timers);
  ~State() { stop_renewing(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // After the return no renewal runs any more.
  void stop_renewing();

  // `response` was encoded within max_result_bytes, as far as that was possible: that it was
  // answered and with which status is kept however small the limit.
  [[nodiscard]] result<CompleteOutcome> complete(std::string_view response);

  std::shared_ptr<IdempotencyService> service;
  Lease lease;

 private:
  void renew();
  void schedule();

  Timers& timers_;
  const Micros beat_;
  std::mutex mutex_;  // guards what follows; held during a renewal
  bool over_ = false;
  std::optional<Timers::Id> alarm_;
};

}  // namespace idem::http
