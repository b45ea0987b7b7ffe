// The verbs for programs on Boost.Asio: any completion token (callback, future, coroutine), and no
// thread per call on any store.
//
//   idem::AsyncService async(io.get_executor(), service);
//   auto claimed = co_await async.async_claim_or_wait({"pay-42", fingerprint}, 2s);
//
// Calls of a store that lives in this process are made at once, in the initiating function; those
// of a server or a file by a few lanes, each a thread that takes what has gathered and asks the
// store for all of it in one batch. Waiting costs no thread at all: all waiters of a key share the
// service's reads. Answers are those of IdempotencyService.
//
// Completion       as a posted function, on the handler's associated executor (default: the
//                  service's); never inside the initiating function. Handler and completion are
//                  kept in memory of the associated allocator; the operation itself is not.
// Cancellation     by the handler's slot, of any type: what waits, or was not sent yet, ends with
//                  errc::cancelled and was surely not applied. A call that is under way is not cut
//                  off; its true answer comes.
// Borrowed         a Lease until the completion, as a buffer is; everything else is moved in.
//
// Link idem::async. Boost.Asio is compiled into it (BOOST_ASIO_SEPARATE_COMPILATION).
#pragma once

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "idem/service.hpp"

namespace idem {

namespace detail {
class AsyncLanes;
}  // namespace detail

struct AsyncOptions {
  // Threads that ask the store, and batches under way at once. Default: 0 if the store lives in
  // this process, else 2. 0: the initiating function asks it, and takes as long as the store does.
  std::optional<std::size_t> lanes;
};

// An action that awaits. It runs on the executor of the AsyncService; where that is a thread pool,
// give the service a strand of it.
using AsyncAction = std::function<boost::asio::awaitable<Verdict>(Attempt&)>;

// Thread safe, but for its end. Shares the service; may outlive its handle.
class AsyncService {
 public:
  using executor_type = boost::asio::any_io_executor;
  // A handler for an answer of type T, and where it is called.
  template <class T>
  struct Handler {
    boost::asio::any_completion_handler<void(T)> function;
    executor_type executor;
  };
  using ExecuteHandler =
      boost::asio::any_completion_handler<void(std::exception_ptr, result<ExecuteOutcome>)>;
  using Default = boost::asio::deferred_t;  // co_await async.async_claim(request)

  AsyncService(executor_type executor, const IdempotencyService& service,
               AsyncOptions options = {});
  // What waits or was not sent ends with errc::cancelled; returns when no lane is at work. To be
  // called before the executors of the handlers end. A running async_execute must be over.
  ~AsyncService();
  AsyncService(const AsyncService&) = delete;
  AsyncService& operator=(const AsyncService&) = delete;

  [[nodiscard]] executor_type get_executor() const { return executor_; }

  // void(result<ClaimOutcome>). Answers at once, whatever Policy::on_duplicate says.
  template <class Token = Default>
  auto async_claim(Request request, CallOptions options = {}, Token&& token = Token()) {
    return initiate<result<ClaimOutcome>, Token>(
        [this](auto handler, Request asked, CallOptions how) {
          claim(std::move(handler), std::move(asked), std::nullopt, std::move(how));
        },
        token, std::move(request), std::move(options));
  }

  // void(result<ClaimOutcome>). As IdempotencyService::claim_or_wait.
  template <class Token = Default>
  auto async_claim_or_wait(Request request, Duration wait, CallOptions options = {},
                           Token&& token = Token()) {
    return initiate<result<ClaimOutcome>, Token>(
        [this](auto handler, Request asked, Duration patience, CallOptions how) {
          claim(std::move(handler), std::move(asked), patience, std::move(how));
        },
        token, std::move(request), wait, std::move(options));
  }

  // void(result<WaitOutcome>). Only reads.
  template <class Token = Default>
  auto async_wait(Request request, Duration wait, CallOptions options = {},
                  Token&& token = Token()) {
    return initiate<result<WaitOutcome>, Token>(
        [this](auto handler, Request asked, Duration patience, CallOptions how) {
          this->wait(std::move(handler), std::move(asked), patience, std::move(how));
        },
        token, std::move(request), wait, std::move(options));
  }

  // void(result<CompleteOutcome>)
  template <class Token = Default>
  auto async_complete(Lease& lease, std::string result_text, CallOptions options = {},
                      Token&& token = Token()) {
    return initiate<result<CompleteOutcome>, Token>(
        [this](auto handler, Lease* of, std::string text, CallOptions how) {
          complete(std::move(handler), *of, std::move(text), std::move(how));
        },
        token, &lease, std::move(result_text), std::move(options));
  }

  // void(result<FailOutcome>)
  template <class Token = Default>
  auto async_fail(Lease& lease, FailKind kind, std::string reason, Duration retry_after = {},
                  CallOptions options = {}, Token&& token = Token()) {
    return initiate<result<FailOutcome>, Token>(
        [this](auto handler, Lease* of, FailKind how_bad, std::string why, Duration later,
               CallOptions how) {
          fail(std::move(handler), *of, how_bad, std::move(why), later, std::move(how));
        },
        token, &lease, kind, std::move(reason), retry_after, std::move(options));
  }

  // void(result<RenewOutcome>)
  template <class Token = Default>
  auto async_renew(Lease& lease, CallOptions options = {}, Token&& token = Token()) {
    return initiate<result<RenewOutcome>, Token>(
        [this](auto handler, Lease* of, CallOptions how) {
          renew(std::move(handler), *of, std::move(how));
        },
        token, &lease, std::move(options));
  }

  // void(result<ReleaseOutcome>)
  template <class Token = Default>
  auto async_release(Lease& lease, CallOptions options = {}, Token&& token = Token()) {
    return initiate<result<ReleaseOutcome>, Token>(
        [this](auto handler, Lease* of, CallOptions how) {
          release(std::move(handler), *of, std::move(how));
        },
        token, &lease, std::move(options));
  }

  // void(std::exception_ptr, result<ExecuteOutcome>). As IdempotencyService::execute, with an
  // action that answers awaitable<R>, R being what a blocking action may answer. When its lease is
  // or may be lost, or at shutdown, what the action awaits is cancelled, too, beside its stop
  // token. A cancellation reaches the waiting for the claim, or the action; the report is made all
  // the same. If there is an exception it is the action's own, and the result means nothing.
  template <class Action, class Token = Default>
  auto async_execute(Request request, Action action, CallOptions options = {},
                     Token&& token = Token()) {
    return boost::asio::async_initiate<Token, void(std::exception_ptr, result<ExecuteOutcome>)>(
        [this](auto handler, Request asked, AsyncAction act, CallOptions how) {
          execute(ExecuteHandler(std::move(handler)), std::move(asked), std::move(act),
                  std::move(how));
        },
        token, std::move(request), as_action(std::move(action)), std::move(options));
  }

 private:
  template <class Answer, class Token, class Start, class... Args>
  auto initiate(Start start, std::remove_reference_t<Token>& token, Args&&... args) {
    return boost::asio::async_initiate<Token, void(Answer)>(
        [this, start = std::move(start)](auto handler, auto&&... moved) {
          executor_type on(boost::asio::get_associated_executor(handler, executor_));
          start(Handler<Answer>{std::move(handler), std::move(on)},
                std::forward<decltype(moved)>(moved)...);
        },
        token, std::forward<Args>(args)...);
  }

  template <class Action>
  static AsyncAction as_action(Action action) {
    if constexpr (std::is_same_v<std::invoke_result_t<Action&, Attempt&>,
                                 boost::asio::awaitable<Verdict>>) {
      return AsyncAction(std::move(action));
    } else {
      return [action = std::move(action)](Attempt& attempt) mutable {
        return as_verdict(action(attempt));
      };
    }
  }

  template <class R>
  static boost::asio::awaitable<Verdict> as_verdict(boost::asio::awaitable<R> running) {
    co_return Verdict(co_await std::move(running));
  }

  void claim(Handler<result<ClaimOutcome>> handler, Request request, std::optional<Duration> wait,
             CallOptions options);
  void wait(Handler<result<WaitOutcome>> handler, Request request, Duration wait,
            CallOptions options);
  void complete(Handler<result<CompleteOutcome>> handler, Lease& lease, std::string text,
                CallOptions options);
  void fail(Handler<result<FailOutcome>> handler, Lease& lease, FailKind kind, std::string reason,
            Duration retry_after, CallOptions options);
  void renew(Handler<result<RenewOutcome>> handler, Lease& lease, CallOptions options);
  void release(Handler<result<ReleaseOutcome>> handler, Lease& lease, CallOptions options);
  void execute(ExecuteHandler handler, Request request, AsyncAction action, CallOptions options);
  boost::asio::awaitable<result<ExecuteOutcome>> run(Request request, AsyncAction action,
                                                     CallOptions options);
  boost::asio::awaitable<result<ExecuteOutcome>> act(Lease lease, AsyncAction action,
                                                     CallOptions options);
  boost::asio::awaitable<result<ExecuteOutcome>> report(Lease& lease, Verdict verdict,
                                                        CallOptions options);

  const executor_type executor_;
  const std::shared_ptr<detail::ServiceImpl> service_;
  const std::unique_ptr<detail::AsyncLanes> lanes_;
};

}  // namespace idem
