// IdempotencyService: the verbs. One per application and store, shared by all its threads.
//
//   auto store = idem::open("sqlite:orders.db").value();
//   idem::IdempotencyService service(store);
//   auto done = service.execute({"pay-42", idem::Fingerprint::of_bytes(body)},
//                               [&](idem::Attempt&) { return charge(body); });
//
// Every verb ends by its deadline (CallOptions::timeout) with a definite outcome, a definite "not
// applied" error, or errc::unknown. A store's `unknown` is resolved by the service itself: it
// repeats the call with the same owner token until the deadline. docs/semantics.md is the contract.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "idem/clock.hpp"
#include "idem/observer.hpp"
#include "idem/outcome.hpp"
#include "idem/policy.hpp"
#include "idem/store.hpp"

namespace idem {

class AsyncService;

namespace detail {
class ServiceImpl;
struct LeaseState;
}  // namespace detail

inline constexpr std::size_t kReasonBytesMax = 4096;

struct Request {
  Key key;
  Fingerprint fingerprint;
};

struct CallOptions {
  PolicyPatch policy;
  std::optional<Owner> owner;       // claim: repeat an earlier attempt's token; default: a new one
  std::optional<Duration> timeout;  // of the whole call; default: ServiceOptions::timeout
};

// The right to run, and the duty to report. Move-only. Thread safe for const members.
//
// The destructor never lies: it neither completes, fails nor releases. A lease that nobody reported
// on stays processing and lapses by itself; the observer is told (on_dropped).
class Lease {
 public:
  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&&) noexcept;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();

  // For a claim made elsewhere (another process, an earlier run): key, token and request hash as
  // they were told there. The first verb on it reads the record. attempt: of that claim, if known.
  [[nodiscard]] static Lease adopt(Request request, Token token, std::uint32_t attempt = 1);

  [[nodiscard]] const Request& request() const;
  [[nodiscard]] Token token() const;
  [[nodiscard]] std::uint64_t fence() const { return token().fence; }
  [[nodiscard]] std::uint32_t attempt() const;
  [[nodiscard]] ClaimKind kind() const;
  [[nodiscard]] std::uint64_t previous_fence() const;
  // As of the claim or the last renewal, by the store's clock.
  [[nodiscard]] Time lease_until() const;
  // Of the claim: lease_until - the store's time then.
  [[nodiscard]] Micros lease_left() const;

 private:
  friend class detail::ServiceImpl;
  friend class Attempt;
  explicit Lease(std::shared_ptr<detail::LeaseState> state);
  void drop() noexcept;
  std::shared_ptr<detail::LeaseState> state_;
};

struct Claimed {
  Lease lease;
};

using ClaimOutcome = std::variant<Claimed, InProgress, Replay, Mismatch, Backoff, Failed, Exhausted,
                                  InDoubt, AlreadyDone>;
using CompleteOutcome = std::variant<Completed, Lost, Conflict, NotProcessing, Gone>;
using FailOutcome = std::variant<FailRecorded, Lost, NotProcessing, Gone>;
using RenewOutcome = std::variant<Renewed, Lost, NotProcessing, Gone, RenewRefused>;
using ReleaseOutcome = std::variant<Released, Lost, NotProcessing>;
using WaitOutcome = std::variant<Claimable, InProgress, Replay, Mismatch, Backoff, Failed,
                                 Exhausted, InDoubt, AlreadyDone>;

// --- execute ---------------------------------------------------------------------------------

// What the caller's function sees of its attempt. Valid during the call.
class Attempt {
 public:
  Attempt(const Lease& lease, std::stop_token stop) : lease_(lease), stop_(std::move(stop)) {}
  // Fires when the lease is or may be lost, or at shutdown: stop, nothing you do counts any more.
  [[nodiscard]] const std::stop_token& stop_token() const { return stop_; }
  // The local safe deadline, by the service's clock: then the token fires unless a renewal is
  // confirmed before. Moves with each renewal; Time::max() if there is no lease to keep. For who
  // must stop work that does not hear the token.
  [[nodiscard]] Time safe_until() const;
  [[nodiscard]] std::uint64_t fence() const { return lease_.fence(); }  // pass it downstream
  [[nodiscard]] std::uint32_t attempt() const { return lease_.attempt(); }
  [[nodiscard]] ClaimKind kind() const { return lease_.kind(); }
  [[nodiscard]] const Key& key() const { return lease_.request().key; }

 private:
  const Lease& lease_;
  std::stop_token stop_;
};

// What the caller's function answers. A plain string is a result.
struct Retryable {
  std::string reason;
  Duration retry_after{};
};
struct Final {
  std::string reason;
};
// No effect happened, anyone may start at once: a first attempt is released. Of a later one the
// record stays, with what the attempts before it were asked and how many they were: a retryable
// failure.
struct NothingDone {};
using Verdict = std::variant<std::string, Retryable, Final, NothingDone>;
using Action = std::function<Verdict(Attempt&)>;

// This call ran the action.
struct Executed {
  std::string result;  // now the first result
  bool late = false;
  std::uint32_t attempt = 1;
};
// This call ran the action, and the action said so.
struct ActionFailed {
  std::string reason;
  FailKind kind = FailKind::retryable;
};
// Executed: ran here. Replay: ran before. Lost: ran here, but another attempt had taken over: not a
// success. Released: the action of a first attempt did nothing.
using ExecuteOutcome = std::variant<Executed, Replay, ActionFailed, Lost, Released, InProgress,
                                    Mismatch, Backoff, Failed, Exhausted, InDoubt, AlreadyDone>;

// --- administration --------------------------------------------------------------------------

struct Swept {
  std::uint64_t abandoned = 0;  // processing -> failed(abandoned)
  std::uint64_t expired = 0;    // removed
};

struct Found {
  Record record;
  Time now{};  // of the store
};

struct ResolveSuccess {
  std::string result;
};
struct ResolveFailure {
  std::string reason;
  FailKind kind = FailKind::final;
};
using Resolution = std::variant<ResolveSuccess, ResolveFailure>;

struct ServiceOptions {
  Policy policy;
  std::map<std::string, PolicyPatch, std::less<>> biz_types;
  Duration timeout = std::chrono::seconds(5);  // of a call, the waiting of wait() not counted
  Clock* clock = nullptr;                      // nullptr: system_clock(); must outlive the service
  std::shared_ptr<Observer> observer;
};

class IdempotencyService {
 public:
  // invalid options (check_policy) throw Exception: a programming error, found at start.
  explicit IdempotencyService(StorePtr store, ServiceOptions options = {});
  ~IdempotencyService();  // shutdown with no grace
  IdempotencyService(const IdempotencyService&) = delete;
  IdempotencyService& operator=(const IdempotencyService&) = delete;

  // One insert in the common case. Answers at once, whatever Policy::on_duplicate says.
  [[nodiscard]] result<ClaimOutcome> claim(const Request& request, const CallOptions& options = {});

  // Claims; while another attempt runs, waits for its end, up to Policy::wait (or `wait`): then
  // InProgress. When the other attempt failed, was released or lapsed, one waiter takes over and
  // the rest go on waiting.
  [[nodiscard]] result<ClaimOutcome> claim_or_wait(const Request& request, Duration wait,
                                                   const CallOptions& options = {});

  // Only reads. At the deadline: InProgress.
  [[nodiscard]] result<WaitOutcome> wait(const Request& request, Duration wait,
                                         const CallOptions& options = {});

  // One write in the common case. errc::unknown: repeat it; never fail or release instead.
  // ttl: default Policy::result_ttl.
  [[nodiscard]] result<CompleteOutcome> complete(Lease& lease, std::string_view result,
                                                 const CallOptions& options = {});
  // A reason over kReasonBytesMax is shortened to it, on a character boundary.
  [[nodiscard]] result<FailOutcome> fail(Lease& lease, FailKind kind, std::string_view reason,
                                         Duration retry_after = Micros(0),
                                         const CallOptions& options = {});
  // lease: default Policy::lease, from now on; never shortens.
  [[nodiscard]] result<RenewOutcome> renew(Lease& lease, const CallOptions& options = {});
  // For use before any effect happened, of this or an earlier attempt: the record is removed.
  [[nodiscard]] result<ReleaseOutcome> release(Lease& lease, const CallOptions& options = {});
  // complete, fail or release, as execute does with its action's answer: for those who run the work
  // themselves (a callback, a proxy) and do not know which attempt it was.
  [[nodiscard]] result<ExecuteOutcome> report(Lease& lease, Verdict verdict,
                                              const CallOptions& options = {});

  // Outcome per item, in input order; one bad item harms no other. A key that stands twice: the
  // later ones are InProgress or Mismatch. Policy::enabled and biz_types apply per item.
  [[nodiscard]] std::vector<result<ClaimOutcome>> claim_many(std::span<const Request> requests,
                                                             const CallOptions& options = {});
  struct CompleteItem {
    Lease* lease;
    std::string_view result;
  };
  [[nodiscard]] std::vector<result<CompleteOutcome>> complete_many(
      std::span<const CompleteItem> items, const CallOptions& options = {});

  // claim (or claim_or_wait, by Policy::on_duplicate), run, complete or fail. A heartbeat renews at
  // lease/3. If the lease is lost, or may be (no renewal confirmed by: sent + lease - margin), the
  // stop token fires and the answer is Lost. An exception of any type from the action fails the
  // claim (retryable, reason "exception: what()") and leaves this function unchanged.
  template <class F>
  requires std::invocable<F&, Attempt&>
  [[nodiscard]] result<ExecuteOutcome> execute(const Request& request, F&& action,
                                               const CallOptions& options = {}) {
    return run(
        request, [&](Attempt& attempt) { return Verdict(action(attempt)); }, options);
  }

  // One bounded step of cleaning; call until both numbers are 0.
  [[nodiscard]] result<Swept> sweep(std::size_t limit = 500);

  // nullopt: absent.
  [[nodiscard]] result<std::optional<Found>> get(KeyRef key);
  [[nodiscard]] result<Page> list(const ListQuery& query);
  // The three name the fence they saw; errc::stale_fence if it is not the record's any more, or
  // the record is not processing. force_release: the record is removed.
  [[nodiscard]] result<void> force_release(KeyRef key, std::uint64_t fence);
  [[nodiscard]] result<void> force_fail(KeyRef key, std::uint64_t fence, std::string_view reason,
                                        FailKind kind = FailKind::final);
  // For InDoubt: what a person found out becomes the record's end.
  [[nodiscard]] result<void> resolve(KeyRef key, std::uint64_t fence, const Resolution& found);

  // New calls and waiters get shutting_down at once, running actions see their stop token; returns
  // when all are back, or after `grace`. Work that may still run keeps its lease. Idempotent.
  void shutdown(Duration grace);

  [[nodiscard]] Counters counters() const;
  [[nodiscard]] IdempotencyStore& store() const;
  [[nodiscard]] Clock& clock() const;
  // The policy of a biz_type.
  [[nodiscard]] const Policy& policy(std::string_view biz_type) const;

 private:
  friend class AsyncService;  // async.hpp: the same service, for Boost.Asio
  [[nodiscard]] result<ExecuteOutcome> run(const Request& request, const Action& action,
                                           const CallOptions& options);
  std::shared_ptr<detail::ServiceImpl> impl_;
};

}  // namespace idem
