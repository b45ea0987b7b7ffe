#include "idem/sweeper.hpp"

#include <atomic>
#include <mutex>
#include <random>

namespace idem {

class Sweeper::Impl {
 public:
  Impl(IdempotencyService& service, SweeperOptions options)
      : service_(service), options_(options), timers_(service.clock().timers()) {
    const Micros every = options.every;
    if (every <= Micros(0) || every > kDurationMax || options.limit == 0 ||
        options.steps_max == 0) {
      throw Exception(fail(errc::invalid_argument,
                           "a sweeper's every, limit and steps_max must be more than 0, and every "
                           "at most 100 years"));
    }
    // Anywhere in the first period: processes that start together do not sweep together.
    schedule(Micros(std::uniform_int_distribution<std::int64_t>(1, every.count())(random_)));
  }

  void stop() {
    stopping_ = true;
    Timers::Id id = 0;
    {
      const std::lock_guard guard(mutex_);
      id = next_;
    }
    timers_->cancel(id);  // also waits for it, if it is this round that runs
  }

  [[nodiscard]] SweeperCounts counts() const {
    const std::lock_guard guard(mutex_);
    return counts_;
  }

 private:
  void schedule(Micros pause) {
    const Timers::Id id = timers_->call_at(service_.clock().now() + pause, [this] { round(); });
    const std::lock_guard guard(mutex_);
    next_ = id;
  }

  // One at a time: the timers run their work one after the other.
  void round() {
    if (stopping_) return;
    bool more = true;
    std::size_t steps = 0;
    for (; more && steps < options_.steps_max && !stopping_; ++steps) more = step();
    {
      const std::lock_guard guard(mutex_);
      ++counts_.rounds;
    }
    if (stopping_) return;
    const Micros pause = more ? options_.every.micros() / 10 : options_.every.micros();
    std::uniform_int_distribution<std::int64_t> spread(pause.count() * 4 / 5,
                                                       pause.count() * 6 / 5);
    schedule(std::max(Micros(1), Micros(spread(random_))));
  }

  // True: there may be more.
  bool step() {
    const auto swept = service_.sweep(options_.limit);
    const std::lock_guard guard(mutex_);
    ++counts_.steps;
    if (!swept) {
      ++counts_.errors;
      return false;
    }
    counts_.abandoned += swept->abandoned;
    counts_.expired += swept->expired;
    return swept->abandoned + swept->expired > 0;
  }

  IdempotencyService& service_;
  const SweeperOptions options_;
  std::minstd_rand random_{std::random_device{}()};
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;  // guards what follows
  SweeperCounts counts_;
  Timers::Id next_ = 0;                   // the round that is due next, or runs
  const std::unique_ptr<Timers> timers_;  // last: its end waits for a round that runs
};

Sweeper::Sweeper(IdempotencyService& service, SweeperOptions options)
    : impl_(std::make_unique<Impl>(service, options)) {}
Sweeper::~Sweeper() { stop(); }
void Sweeper::stop() { impl_->stop(); }
SweeperCounts Sweeper::counts() const { return impl_->counts(); }

}  // namespace idem
