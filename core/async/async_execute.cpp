// async_execute: claim, run an action that awaits, report. The blocking form is
// core/src/service_execute.cpp; what they decide is the same (verdicts.hpp).
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "idem/async.hpp"
#include "lanes.hpp"
#include "service_impl.hpp"
#include "verdicts.hpp"

namespace idem {
namespace asio = boost::asio;

namespace {

// A run of the service, ended whatever happens.
class Run {
 public:
  Run(detail::ServiceImpl& service, const Lease& lease)
      : service_(service), beat_(service.begin_run(lease)) {}
  ~Run() { service_.end_run(beat_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  [[nodiscard]] std::stop_token stop_token() const { return beat_->stop.get_token(); }
  // The lease is the report's business from here on. True if it is or may be lost.
  bool end_beat() {
    service_.end_beat(beat_);
    return beat_->lost;
  }

 private:
  detail::ServiceImpl& service_;
  std::shared_ptr<detail::Beat> beat_;
};

}  // namespace

// Not on the handler's executor: a future's is a thread pool of the system's.
void AsyncService::execute(ExecuteHandler handler, Request request, AsyncAction action,
                           CallOptions options) {
  asio::co_spawn(executor_, run(std::move(request), std::move(action), std::move(options)),
                 std::move(handler));
}

asio::awaitable<result<ExecuteOutcome>> AsyncService::run(Request request, AsyncAction action,
                                                          CallOptions options) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  const auto policy = service_->prepare(request.key, options);
  if (!policy) co_return service_->broken("execute", request.key, policy.error());
  result<ClaimOutcome> claimed = idem::fail(errc::internal, "not claimed");
  if (policy->on_duplicate == OnDuplicate::wait) {
    claimed = co_await async_claim_or_wait(std::move(request), policy->wait, options,
                                           asio::use_awaitable);
  } else {
    claimed = co_await async_claim(std::move(request), options, asio::use_awaitable);
  }
  if (!claimed) co_return std::move(claimed).error();
  if (auto* won = std::get_if<Claimed>(&*claimed)) {
    co_return co_await act(std::move(won->lease), std::move(action), std::move(options));
  }
  co_return std::move(*detail::without_running(std::move(*claimed)));
}

asio::awaitable<result<ExecuteOutcome>> AsyncService::act(Lease lease, AsyncAction action,
                                                          CallOptions options) {
  Run run(*service_, lease);
  std::optional<Verdict> verdict;
  std::exception_ptr thrown;
  {
    // The action hears of the caller's cancellation and of the heartbeat's stop.
    const auto signal = std::make_shared<asio::cancellation_signal>();
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    const auto executor = co_await asio::this_coro::executor;
    auto outer = cancellation.slot();
    if (outer.is_connected()) {
      outer.assign([signal](asio::cancellation_type type) { signal->emit(type); });
    }
    const std::stop_callback on_stop(run.stop_token(), [executor, weak = std::weak_ptr(signal)] {
      asio::post(executor, [weak] {
        if (const auto alive = weak.lock()) alive->emit(asio::cancellation_type::terminal);
      });
    });
    try {
      Attempt attempt(lease, run.stop_token());
      verdict = co_await asio::co_spawn(
          executor, action(attempt),
          asio::bind_cancellation_slot(signal->slot(), asio::use_awaitable));
    } catch (...) {
      thrown = std::current_exception();
    }
    if (outer.is_connected()) outer.clear();
  }
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  const bool lost = run.end_beat();
  if (thrown) {
    // The caller hears of its own exception; that the record could not be told is the observer's.
    if (!lost) {
      (void)co_await async_fail(lease, FailKind::retryable, detail::describe(thrown), Duration(),
                                std::move(options), asio::use_awaitable);
    }
    std::rethrow_exception(thrown);
  }
  if (lost) co_return service_->give_up(lease);
  co_return co_await report(lease, std::move(*verdict), std::move(options));
}

asio::awaitable<result<ExecuteOutcome>> AsyncService::report(Lease& lease, Verdict verdict,
                                                             CallOptions options) {
  verdict = detail::of_attempt(std::move(verdict), lease.attempt());
  if (auto* text = std::get_if<std::string>(&verdict)) {
    auto done = co_await async_complete(lease, *text, std::move(options), asio::use_awaitable);
    co_return detail::after_complete(std::move(done), std::move(*text), lease.attempt());
  }
  if (std::holds_alternative<NothingDone>(verdict)) {
    const auto released = co_await async_release(lease, std::move(options), asio::use_awaitable);
    co_return detail::after_release(released);
  }
  const detail::Failing failing(std::move(verdict));
  auto failed = co_await async_fail(lease, failing.kind, failing.reason, failing.retry_after,
                                    std::move(options), asio::use_awaitable);
  co_return detail::after_fail(std::move(failed), failing);
}

}  // namespace idem
