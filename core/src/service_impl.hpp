// The service behind the handle: what all verbs share. The verbs stand in service_claim.cpp,
// service_report.cpp, service_execute.cpp and service_admin.cpp.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>

#include "counter_bank.hpp"
#include "driver.hpp"
#include "heartbeats.hpp"
#include "idem/service.hpp"
#include "lease_state.hpp"
#include "wait_hub.hpp"

namespace idem::detail {

class ServiceImpl : public std::enable_shared_from_this<ServiceImpl> {
 public:
  ServiceImpl(StorePtr store, ServiceOptions options);
  ~ServiceImpl();

  result<ClaimOutcome> claim(const Request& request, const CallOptions& options);
  result<ClaimOutcome> claim_or_wait(const Request& request, Duration wait,
                                     const CallOptions& options);
  result<WaitOutcome> wait(const Request& request, Duration wait, const CallOptions& options);
  std::vector<result<ClaimOutcome>> claim_many(std::span<const Request> requests,
                                               const CallOptions& options);

  result<CompleteOutcome> complete(Lease& lease, std::string_view result,
                                   const CallOptions& options);
  std::vector<result<CompleteOutcome>> complete_many(
      std::span<const IdempotencyService::CompleteItem> items, const CallOptions& options);
  result<FailOutcome> fail(Lease& lease, FailKind kind, std::string_view reason,
                           Duration retry_after, const CallOptions& options);
  result<RenewOutcome> renew(Lease& lease, const CallOptions& options);
  result<ReleaseOutcome> release(Lease& lease, const CallOptions& options);

  result<ExecuteOutcome> run(const Request& request, const Action& action,
                             const CallOptions& options);

  result<Swept> sweep(std::size_t limit);
  result<std::optional<Found>> get(KeyRef key);
  result<Page> list(const ListQuery& query);
  result<void> administer(KeyRef key, const Command& command);

  void shutdown(Duration grace);
  void dropped(const LeaseState& lease) noexcept;

  [[nodiscard]] Counters counters() const { return counters_.snapshot(); }
  [[nodiscard]] IdempotencyStore& store() const { return *store_; }
  [[nodiscard]] Clock& clock() const { return clock_; }
  [[nodiscard]] const Policy& policy(std::string_view biz_type) const;

 private:
  struct ClaimPlan;
  struct Report;

  // Checked key and policy of a call.
  result<Policy> prepare(KeyRef key, const CallOptions& options) const;
  [[nodiscard]] DriveLimits limits(const CallOptions& options) const;
  void drive(std::span<Call> calls, const DriveLimits& limits);

  result<ClaimOutcome> finish_claim(const ClaimPlan& plan, Call& call);
  ClaimOutcome bypass(const Request& request, const Policy& policy);
  Lease make_lease(const Request& request, const Policy& policy, const Granted& granted,
                   const Record& written);
  void count_claim(KeyRef key, const ClaimOutcome& outcome, const Granted* granted);

  result<Report> prepare_report(Lease& lease, const CallOptions& options) const;
  result<command::Complete> prepare_complete(Report& report, std::string_view result) const;
  result<CompleteOutcome> finish_complete(Report& report, Call& call);
  static void start_call(Call& call, const Report& report, const Command& command);

  result<ExecuteOutcome> act(Lease lease, const Action& action, const CallOptions& options);
  result<ExecuteOutcome> report(Lease& lease, Verdict verdict, const CallOptions& options);

  // An error, counted and told.
  Error broken(std::string_view verb, KeyRef key, Error error);
  void count(Counter counter, std::uint64_t n = 1) { counters_.add(counter, n); }
  [[nodiscard]] bool shutting_down() const {
    // relaxed: a late reader only starts one more call, which shutdown() waits for or not
    return shutting_down_.load(std::memory_order_relaxed);
  }

  StorePtr store_;
  ServiceOptions options_;
  Clock& clock_;
  std::map<std::string, Policy, std::less<>> policies_;
  CounterBank counters_;
  std::shared_ptr<WaitHub> hub_;
  Heartbeats heartbeats_;

  std::atomic<bool> shutting_down_{false};
  std::mutex runs_mutex_;
  std::condition_variable runs_ended_;
  std::set<std::shared_ptr<Beat>> runs_;
};

[[nodiscard]] inline Error shutting_down_error() {
  return idem::fail(errc::shutting_down, "the service is shutting down");
}

// Narrows the machine's outcome to a verb's. An outcome the verb does not have is a broken
// invariant.
template <class To>
result<To> narrow(Outcome outcome) {
  return std::visit(
      [](auto&& one) -> result<To> {
        if constexpr (std::is_constructible_v<To, decltype(one)>) {
          return To(std::forward<decltype(one)>(one));
        } else {
          return idem::fail(errc::internal, "an outcome that this verb does not have");
        }
      },
      std::move(outcome));
}

}  // namespace idem::detail
