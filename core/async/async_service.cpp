#include "idem/async.hpp"
#include "lanes.hpp"
#include "operation.hpp"

namespace idem {
namespace detail {
namespace {

class Claiming final : public Answering<result<ClaimOutcome>> {
 public:
  Claiming(AsyncService::Handler<result<ClaimOutcome>> handler, Request request,
           std::optional<Time> deadline, CallOptions options)
      : Answering(std::move(handler)),
        request_(std::move(request)),
        deadline_(deadline),
        options_(std::move(options)) {}

  void start(AsyncLanes& lanes) override { lanes.run(shared_from_this()); }

 private:
  void add_to(Batch& batch) override {
    batch.claims.push_back({&request_, &options_});
    batch.claimed.push_back(&answer_);
  }

  void settle(AsyncLanes& lanes) override {
    if (deadline_ && lanes.service().worth_waiting(answer_, *deadline_)) {
      wait(lanes, request_, *deadline_, options_, true);
    } else {
      finish(std::move(answer_));
    }
  }

  void waited(AsyncLanes& lanes, result<WaitOutcome> answer) override {
    if (auto final = lanes.service().claim_after(std::move(answer))) {
      finish(std::move(*final));
    } else if (queue_again()) {
      lanes.run(shared_from_this());
    }
  }

  const Request request_;
  const std::optional<Time> deadline_;  // none: never waits
  const CallOptions options_;
  result<ClaimOutcome> answer_ = idem::fail(errc::internal, "not driven");
};

class Waiting final : public Answering<result<WaitOutcome>> {
 public:
  Waiting(AsyncService::Handler<result<WaitOutcome>> handler, Request request, Time deadline,
          CallOptions options)
      : Answering(std::move(handler)),
        request_(std::move(request)),
        deadline_(deadline),
        options_(std::move(options)) {}

  void start(AsyncLanes& lanes) override { wait(lanes, request_, deadline_, options_, false); }

 private:
  void add_to(Batch& /*batch*/) override {}
  void settle(AsyncLanes& /*lanes*/) override {}
  void waited(AsyncLanes& /*lanes*/, result<WaitOutcome> answer) override {
    finish(std::move(answer));
  }

  const Request request_;
  const Time deadline_;
  const CallOptions options_;
};

class Completing final : public Answering<result<CompleteOutcome>> {
 public:
  Completing(AsyncService::Handler<result<CompleteOutcome>> handler, Lease& lease, std::string text,
             CallOptions options)
      : Answering(std::move(handler)),
        lease_(lease),
        text_(std::move(text)),
        options_(std::move(options)) {}

  void start(AsyncLanes& lanes) override { lanes.run(shared_from_this()); }

 private:
  void add_to(Batch& batch) override {
    batch.completes.push_back({&lease_, text_, &options_});
    batch.completed.push_back(&answer_);
  }
  void settle(AsyncLanes& /*lanes*/) override { finish(std::move(answer_)); }

  Lease& lease_;
  const std::string text_;
  const CallOptions options_;
  result<CompleteOutcome> answer_ = idem::fail(errc::internal, "not driven");
};

// fail, renew, release: `ask` is the blocking verb.
template <class T>
class Asking final : public Answering<T> {
 public:
  using Ask = std::function<T(ServiceImpl&)>;

  Asking(AsyncService::Handler<T> handler, Ask ask)
      : Answering<T>(std::move(handler)), ask_(std::move(ask)) {}

  void start(AsyncLanes& lanes) override { lanes.run(this->shared_from_this()); }
  void perform(ServiceImpl& service) override { answer_ = ask_(service); }

 private:
  void add_to(Batch& batch) override { batch.others.push_back(this); }
  void settle(AsyncLanes& /*lanes*/) override { this->finish(std::move(answer_)); }

  const Ask ask_;
  T answer_ = idem::fail(errc::internal, "not driven");
};

template <class Op, class... Args>
void begin(AsyncLanes& lanes, Args&&... args) {
  const auto operation = std::make_shared<Op>(std::forward<Args>(args)...);
  operation->bind_cancellation(lanes.service());
  operation->start(lanes);
}

std::size_t lanes_wanted(const AsyncOptions& options, const IdempotencyStore& store) {
  if (options.lanes) return *options.lanes;
  const Capabilities& is = store.capabilities();
  return is.durability == Durability::none && !is.multi_process ? 0 : 2;
}

}  // namespace
}  // namespace detail

AsyncService::AsyncService(executor_type executor, const IdempotencyService& service,
                           AsyncOptions options)
    : executor_(std::move(executor)),
      service_(service.impl_),
      lanes_(std::make_unique<detail::AsyncLanes>(
          service_, detail::lanes_wanted(options, service_->store()))) {}

AsyncService::~AsyncService() = default;

void AsyncService::claim(Handler<result<ClaimOutcome>> handler, Request request,
                         std::optional<Duration> wait, CallOptions options) {
  std::optional<Time> deadline;
  if (wait) deadline = service_->until(*wait);
  detail::begin<detail::Claiming>(*lanes_, std::move(handler), std::move(request), deadline,
                                  std::move(options));
}

void AsyncService::wait(Handler<result<WaitOutcome>> handler, Request request, Duration wait,
                        CallOptions options) {
  detail::begin<detail::Waiting>(*lanes_, std::move(handler), std::move(request),
                                 service_->until(wait), std::move(options));
}

void AsyncService::complete(Handler<result<CompleteOutcome>> handler, Lease& lease,
                            std::string text, CallOptions options) {
  detail::begin<detail::Completing>(*lanes_, std::move(handler), lease, std::move(text),
                                    std::move(options));
}

void AsyncService::fail(Handler<result<FailOutcome>> handler, Lease& lease, FailKind kind,
                        std::string reason, Duration retry_after, CallOptions options) {
  detail::begin<detail::Asking<result<FailOutcome>>>(
      *lanes_, std::move(handler),
      [&lease, kind, reason = std::move(reason), retry_after,
       options = std::move(options)](detail::ServiceImpl& service) {
        return service.fail(lease, kind, reason, retry_after, options);
      });
}

void AsyncService::renew(Handler<result<RenewOutcome>> handler, Lease& lease, CallOptions options) {
  detail::begin<detail::Asking<result<RenewOutcome>>>(
      *lanes_, std::move(handler),
      [&lease, options = std::move(options)](detail::ServiceImpl& service) {
        return service.renew(lease, options);
      });
}

void AsyncService::release(Handler<result<ReleaseOutcome>> handler, Lease& lease,
                           CallOptions options) {
  detail::begin<detail::Asking<result<ReleaseOutcome>>>(
      *lanes_, std::move(handler),
      [&lease, options = std::move(options)](detail::ServiceImpl& service) {
        return service.release(lease, options);
      });
}

}  // namespace idem
