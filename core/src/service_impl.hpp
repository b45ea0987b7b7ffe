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
  // One of a batch; everything is borrowed.
  struct ClaimItem {
    const Request* request;
    const CallOptions* options;
    result<ClaimOutcome> answer = idem::fail(errc::internal, "not driven");
  };
  void claim_each(std::span<ClaimItem> items);
  std::vector<result<ClaimOutcome>> claim_many(std::span<const Request> requests,
                                               const CallOptions& options);

  // wait() without a thread. Borrows `request` until `done` was called (see WaitHub::Done); that
  // may be before the return. nullptr: it was.
  WaitHub::Ticket start_wait(const Request& request, Time deadline, const CallOptions& options,
                             bool will_claim, std::function<void(result<WaitOutcome>)> done);
  void cancel_wait(const WaitHub::Ticket& ticket, Error why) {
    hub_->cancel(ticket, std::move(why));
  }
  // The parts of claim_or_wait(). until: the deadline of a waiting that begins now. claim_after:
  // nullopt means claim again.
  [[nodiscard]] Time until(Duration wait) const;
  [[nodiscard]] bool worth_waiting(const result<ClaimOutcome>& claimed, Time deadline) const;
  std::optional<result<ClaimOutcome>> claim_after(result<WaitOutcome> waited);

  result<CompleteOutcome> complete(Lease& lease, std::string_view result,
                                   const CallOptions& options);
  struct CompleteItem {
    Lease* lease;
    std::string_view text;
    const CallOptions* options;
    idem::result<CompleteOutcome> answer = idem::fail(errc::internal, "not driven");
  };
  void complete_each(std::span<CompleteItem> items);
  std::vector<result<CompleteOutcome>> complete_many(
      std::span<const IdempotencyService::CompleteItem> items, const CallOptions& options);
  result<FailOutcome> fail(Lease& lease, FailKind kind, std::string_view reason,
                           Duration retry_after, const CallOptions& options);
  result<RenewOutcome> renew(Lease& lease, const CallOptions& options);
  result<ReleaseOutcome> release(Lease& lease, const CallOptions& options);
  result<ExecuteOutcome> report(Lease& lease, Verdict verdict, const CallOptions& options);

  result<ExecuteOutcome> run(const Request& request, const Action& action,
                             const CallOptions& options);
  // The parts of run(). A run's lease is kept alive, and its action stopped by a shutdown or when
  // the lease is or may be lost, until end_beat(); a shutdown waits for it until end_run().
  std::shared_ptr<Beat> begin_run(const Lease& lease);
  void end_beat(const std::shared_ptr<Beat>& beat) { heartbeats_.end(beat); }
  void end_run(const std::shared_ptr<Beat>& beat);
  // What the action returned after its stop counts for nothing, even if nobody took over.
  ExecuteOutcome give_up(const Lease& lease);

  result<Swept> sweep(std::size_t limit);
  result<std::optional<Found>> get(KeyRef key);
  result<Page> list(const ListQuery& query);
  result<void> administer(KeyRef key, const Command& command);

  void shutdown(Duration grace);
  void dropped(const LeaseState& lease) noexcept;

  // Checked key and policy of a call.
  result<Policy> prepare(KeyRef key, const CallOptions& options) const;
  // An error, counted and told.
  Error broken(std::string_view verb, KeyRef key, Error error);

  [[nodiscard]] Counters counters() const { return counters_.snapshot(); }
  [[nodiscard]] IdempotencyStore& store() const { return *store_; }
  [[nodiscard]] Clock& clock() const { return clock_; }
  [[nodiscard]] const Policy& policy(std::string_view biz_type) const;

 private:
  struct ClaimPlan;
  struct Report;

  [[nodiscard]] DriveLimits limits(const CallOptions& options) const;
  void drive(std::span<Call> calls, const DriveLimits& limits);

  result<ClaimOutcome> finish_claim(const ClaimPlan& plan, Call& call);
  result<WaitOutcome> finish_wait(const Request& request, result<Outcome> answer);
  ClaimOutcome bypass(const Request& request, const Policy& policy);
  Lease make_lease(const Request& request, const Policy& policy, const Granted& granted,
                   const Record& written);
  void count_claim(KeyRef key, const ClaimOutcome& outcome, const Granted* granted);

  result<Report> prepare_report(Lease& lease, const CallOptions& options) const;
  result<command::Complete> prepare_complete(Report& report, std::string_view result) const;
  result<CompleteOutcome> finish_complete(Report& report, Call& call);
  static void start_call(Call& call, const Report& report, const Command& command);

  result<ExecuteOutcome> act(Lease lease, const Action& action, const CallOptions& options);

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
