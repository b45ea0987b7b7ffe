#include "idem/testing/fault_store.hpp"

#include <algorithm>
#include <memory>

namespace idem::testing {
namespace {

// An operation that outlives its call: owns what the original borrows.
template <class Op>
struct Kept {
  Key key;
  std::string result;
  Op op;
};

std::string_view* result_of(Insert& op) { return &op.draft.result; }
std::string_view* result_of(Replace& op) { return &op.draft.result; }
std::string_view* result_of(Load&) { return nullptr; }
std::string_view* result_of(Remove&) { return nullptr; }

template <class Op>
std::function<void()> keep(IdempotencyStore& store, std::span<const Op> ops,
                           void (IdempotencyStore::*call)(std::span<Op>)) {
  auto kept = std::make_shared<std::vector<Kept<Op>>>();
  for (const Op& op : ops) kept->push_back({Key(op.key), "", op});
  for (Kept<Op>& item : *kept) {
    if (std::string_view* result = result_of(item.op)) item.result = *result;
  }
  return [&store, call, kept] {
    for (Kept<Op>& item : *kept) {
      item.op.key = item.key;
      if (std::string_view* result = result_of(item.op)) *result = item.result;
      (store.*call)(std::span<Op>(&item.op, 1));
    }
  };
}

Error error_of(Fault fault) {
  switch (fault) {
    case Fault::refuse:
      return fail(errc::unavailable, "injected: the store was not reached");
    case Fault::busy:
      return fail(errc::busy, "injected: another writer holds the store");
    case Fault::full:
      return fail(errc::capacity, "injected: the store is full");
    default:
      return fail(errc::unknown, "injected: no answer came");
  }
}

bool answers(Fault fault) {
  return fault == Fault::none || fault == Fault::duplicate || fault == Fault::delay;
}

}  // namespace

FaultStore::FaultStore(StorePtr behind, Clock& clock)
    : ForwardingStore(std::move(behind)), clock_(clock) {}

FaultStore::~FaultStore() = default;

void FaultStore::on_call(Verb verb, std::uint64_t nth, Fault fault, Micros delay) {
  const std::lock_guard guard(mutex_);
  plans_.push_back({verb, nth, fault, delay, nullptr});
}

void FaultStore::on_every_call(Verb verb, Fault fault) {
  const std::lock_guard guard(mutex_);
  plans_.push_back({verb, 0, fault, Micros(0), nullptr});
}

void FaultStore::before_call(Verb verb, std::uint64_t nth, std::function<void()> happens) {
  const std::lock_guard guard(mutex_);
  plans_.push_back({verb, nth, Fault::none, Micros(0), std::move(happens)});
}

void FaultStore::at_random(std::uint64_t seed, const FaultRates& rates) {
  const std::lock_guard guard(mutex_);
  random_.seed(seed);
  rates_ = rates;
  at_random_ = true;
}

void FaultStore::calm() {
  std::deque<std::function<void()>> due;
  {
    const std::lock_guard guard(mutex_);
    plans_.clear();
    at_random_ = false;
    due.swap(late_);
    young_ = 0;
  }
  for (const auto& apply : due) apply();
}

std::uint64_t FaultStore::faults() const {
  const std::lock_guard guard(mutex_);
  return faults_;
}

FaultStore::Met FaultStore::next(Verb verb) {
  const std::lock_guard guard(mutex_);
  Met met = at_random_ ? roll(verb) : Met{};
  for (auto plan = plans_.begin(); plan != plans_.end();) {
    if (plan->verb != verb) {
      ++plan;
    } else if (plan->calls_left == 0) {
      met = {plan->fault, plan->delay, nullptr};
      ++plan;
    } else if (--plan->calls_left == 0) {
      met = {plan->fault, plan->delay, std::move(plan->happens)};
      plan = plans_.erase(plan);
    } else {
      ++plan;
    }
  }
  if (met.fault != Fault::none) ++faults_;
  return met;
}

FaultStore::Met FaultStore::roll(Verb verb) {
  // A repeated sweep has another count, and pages and stats are read again by whoever wants them.
  if (verb > Verb::remove) return {};
  double at = std::uniform_real_distribution<double>(0, 1)(random_);
  const auto hit = [&at](double rate) {
    at -= rate;
    return at < 0;
  };
  if (hit(rates_.refuse)) return {Fault::refuse, Micros(0), nullptr};
  if (hit(rates_.lose_request)) return {Fault::lose_request, Micros(0), nullptr};
  if (hit(rates_.lose_reply)) return {Fault::lose_reply, Micros(0), nullptr};
  if (hit(rates_.apply_late)) return {Fault::apply_late, Micros(0), nullptr};
  if (hit(rates_.duplicate)) return {Fault::duplicate, Micros(0), nullptr};
  return {};
}

void FaultStore::apply_late_ones() {
  std::deque<std::function<void()>> due;
  {
    const std::lock_guard guard(mutex_);
    while (late_.size() > young_) {
      due.push_back(std::move(late_.front()));
      late_.pop_front();
    }
    young_ = 0;
  }
  for (const auto& apply : due) apply();
}

void FaultStore::prelude(const Met& met) {
  apply_late_ones();
  if (met.happens) met.happens();
  if (met.fault == Fault::delay) clock_.pause(met.delay);
}

template <class Op>
void FaultStore::run(Verb verb, std::span<Op> ops, void (IdempotencyStore::*call)(std::span<Op>)) {
  const Met met = next(verb);
  prelude(met);
  if (met.fault == Fault::apply_late) {
    const std::lock_guard guard(mutex_);
    late_.push_back(keep<Op>(behind(), ops, call));
    ++young_;
  }
  if (answers(met.fault) || met.fault == Fault::lose_reply) (behind().*call)(ops);
  if (met.fault == Fault::duplicate) (behind().*call)(ops);
  if (answers(met.fault)) return;
  for (Op& op : ops) {
    op.answer.state = Answer::State::failed;
    op.answer.error = error_of(met.fault);
  }
}

template <class T, class Call>
result<T> FaultStore::run_whole(Verb verb, Call call) {
  const Met met = next(verb);
  prelude(met);
  if (answers(met.fault)) return call();
  if (met.fault == Fault::lose_reply || met.fault == Fault::apply_late) (void)call();
  return error_of(met.fault);
}

void FaultStore::insert(std::span<Insert> ops) {
  run<Insert>(Verb::insert, ops, &IdempotencyStore::insert);
}
void FaultStore::replace(std::span<Replace> ops) {
  run<Replace>(Verb::replace, ops, &IdempotencyStore::replace);
}
void FaultStore::load(std::span<Load> ops) { run<Load>(Verb::load, ops, &IdempotencyStore::load); }
void FaultStore::remove(std::span<Remove> ops) {
  run<Remove>(Verb::remove, ops, &IdempotencyStore::remove);
}
result<std::uint64_t> FaultStore::sweep(std::size_t limit) {
  return run_whole<std::uint64_t>(Verb::sweep, [&] { return behind().sweep(limit); });
}
result<Page> FaultStore::list(const ListQuery& query) {
  return run_whole<Page>(Verb::list, [&] { return behind().list(query); });
}
result<StoreStats> FaultStore::stats() {
  return run_whole<StoreStats>(Verb::stats, [&] { return behind().stats(); });
}

}  // namespace idem::testing
