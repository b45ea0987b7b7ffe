// One asynchronous call: from its initiation to the posting of its handler.
//
//   queued -> running -> over            a lane took it, and its answer is the end
//                     -> waiting -> ...  claim_or_wait and wait: the service's wait hub has it
//   queued, waiting   -> over            by cancel()
#pragma once

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "idem/async.hpp"
#include "idem/combiner.hpp"
#include "service_impl.hpp"

namespace idem::detail {

class AsyncLanes;
class Operation;

// What a lane asks the store at once, and where each answer goes.
struct Batch {
  std::vector<ServiceImpl::ClaimItem> claims;
  std::vector<result<ClaimOutcome>*> claimed;
  std::vector<ServiceImpl::CompleteItem> completes;
  std::vector<result<CompleteOutcome>*> completed;
  std::vector<Operation*> others;  // one by one
};

[[nodiscard]] inline Error cancelled_error() {
  return idem::fail(errc::cancelled, "cancelled before it was sent; nothing was changed");
}

// Owned by whoever may still call it: a lane, the hub, the handler's cancellation slot (weakly).
class Operation : public CombinerJob, public std::enable_shared_from_this<Operation> {
 public:
  // Takes it to a lane, or runs it in place, or begins to wait.
  virtual void start(AsyncLanes& lanes) = 0;
  // Adds what is to be asked. False: cancelled meanwhile, nothing is.
  bool gather(Batch& batch);
  // For `others`: asks by itself.
  virtual void perform(ServiceImpl& service);
  // The answers are there; called without a lock, also for what was cancelled.
  void executed(AsyncLanes& lanes);
  // By the handler's slot, or by the end of the service. Thread safe.
  void cancel(ServiceImpl& service);

 protected:
  virtual void add_to(Batch& batch) = 0;
  virtual void settle(AsyncLanes& lanes) = 0;  // after a lane: finish or wait
  virtual void finish_cancelled() = 0;

  // Waits on the hub; `waited` is called with its answer, and may start anew.
  void wait(AsyncLanes& lanes, const Request& request, Time deadline, const CallOptions& options,
            bool will_claim);
  virtual void waited(AsyncLanes& lanes, result<WaitOutcome> answer);
  // False: it was cancelled, and is over.
  bool queue_again();
  // True once: the right to post the handler.
  bool end();

 private:
  enum class State : std::uint8_t { queued, running, waiting, over };
  std::mutex mutex_;  // guards what follows
  State state_ = State::queued;
  bool cancelled_ = false;
  std::uint64_t waits_ = 0;  // how many it began
  WaitHub::Ticket ticket_;   // of the last one, while it waits
};

// With the handler for an answer of type T.
template <class T>
class Answering : public Operation {
 public:
  explicit Answering(AsyncService::Handler<T> handler)
      : handler_(std::move(handler.function)),
        executor_(std::move(handler.executor)),
        work_(boost::asio::prefer(executor_, boost::asio::execution::outstanding_work.tracked)) {}

  // Before start().
  void bind_cancellation(ServiceImpl& service) {
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    if (!slot.is_connected()) return;
    const std::shared_ptr<ServiceImpl> kept = service.shared_from_this();
    slot.assign([weak = weak_from_this(), kept](boost::asio::cancellation_type type) {
      if (type == boost::asio::cancellation_type::none) return;
      if (const auto operation = weak.lock()) operation->cancel(*kept);
    });
  }

 protected:
  void finish(T answer) {
    if (!end()) return;
    const auto allocator = boost::asio::get_associated_allocator(handler_);
    const auto executor = executor_;  // ours: the handler may be over before post() returns
    const auto work = std::move(work_);
    boost::asio::post(
        executor, boost::asio::bind_allocator(
                      allocator, [self = std::static_pointer_cast<Answering>(shared_from_this()),
                                  answer = std::move(answer)]() mutable {
                        auto handler = std::move(self->handler_);
                        boost::asio::get_associated_cancellation_slot(handler).clear();
                        self.reset();
                        std::move(handler)(std::move(answer));
                      }));
  }

  void finish_cancelled() override { finish(T(cancelled_error())); }

 private:
  boost::asio::any_completion_handler<void(T)> handler_;
  AsyncService::executor_type executor_;
  AsyncService::executor_type work_;
};

}  // namespace idem::detail
