// Drives one table through one round of a plan.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "load/histogram.hpp"
#include "peers/plan.hpp"
#include "peers/precedence.hpp"
#include "peers/stopwatch.hpp"

namespace idem::bench {

template <class Table>
concept BatchesClaims = requires(typename Table::Caller& caller, const char* keys, Claim* claims) {
  caller.claim_batch(keys, std::size_t{}, claims);
};
template <class Table>
concept BatchesReplays = requires(typename Table::Caller& caller, const char* keys) {
  caller.replay_batch(keys, std::size_t{}, [](const char*) {});
};
template <class Table>
concept TellsItsSize = requires(Table& table) {
  table.bytes();
  table.sweep_all();
};
template <class Table>
concept NeedsExpiring = requires(typename Table::Caller& caller, const char* key) {
  caller.expire(key);
};

struct Round {
  double mops = 0;            // million calls for one key each per second, all threads together
  double other_cpu = 0;       // cores that other processes took meanwhile
  std::size_t held = 0;       // records in the table at the end
  Histogram latency;          // of calls (a batch is one)
  double claimed_bytes = 0;   // memory only: resident bytes per record
  double finished_bytes = 0;  // memory only
  // What a table that can tell says of its own size, in bytes. steady: after four lives, and after
  // all; lapse: before the records expired, and when nothing was left of them.
  std::size_t bytes_before = 0;
  std::size_t bytes_after = 0;
  double home_ms = 0;  // lapse: how long that took after the last claim
  // churn: resident bytes of the process, once a second from the first tenth of the time on.
  std::size_t resident_least = 0;
  std::size_t resident_most = 0;
};

[[noreturn]] inline void refuse(const char* what) {
  std::fprintf(stderr, "bench-peers: this table is wrong: %s\n", what);
  std::exit(1);
}

[[noreturn]] inline void refuse_fifo() {
  std::fputs("bench-peers: fifo=1 takes the right to real-time priority (root, or RLIMIT_RTPRIO)\n",
             stderr);
  std::exit(1);
}

template <class Table>
class Drive {
 public:
  using Caller = typename Table::Caller;

  Drive(const Plan& plan, const Requests& requests)
      : plan_(plan), requests_(requests), table_(setup()), tallies_(plan.threads) {}

  Round round() {
    if (plan_.workload == Workload::memory) return weigh();
    if (plan_.workload == Workload::churn) return churn();
    finish_all();
    Round round;
    bytes_before_ = own_bytes();
    if (plan_.workload == Workload::lapse) race_clock().advance(life_of(plan_));
    const CpuWatch cpu;
    std::barrier<> start(static_cast<std::ptrdiff_t>(plan_.threads));
    in_threads([&](std::size_t t) {
      if (plan_.fifo && !take_precedence()) refuse_fifo();
      start.arrive_and_wait();
      tallies_[t].begin = Stopwatch::now();
      work(t);
      tallies_[t].end = Stopwatch::now();
    });
    round.other_cpu = cpu.other_cores();
    std::int64_t begin = tallies_[0].begin;
    std::int64_t end = tallies_[0].end;
    std::size_t calls = 0;
    for (Tally& tally : tallies_) {
      begin = std::min(begin, tally.begin);
      end = std::max(end, tally.end);
      calls += tally.calls;
      round.latency.merge(tally.latency);
    }
    round.mops = static_cast<double>(calls) * 1e3 / static_cast<double>(end - begin);
    round.held = table_.size();
    check(round);
    if constexpr (TellsItsSize<Table>) {
      if (plan_.workload == Workload::lapse) table_.sweep_all();
      round.home_ms = static_cast<double>(Stopwatch::now() - end) * 1e-6;
    }
    round.bytes_before = bytes_before_;
    round.bytes_after = own_bytes();
    return round;
  }

 private:
  struct alignas(128) Tally {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::size_t calls = 0;
    std::size_t won = 0;
    std::size_t turned_away = 0;
    std::size_t replayed = 0;
    std::size_t completed = 0;
    std::uint64_t sum = 0;
    Histogram latency;

    void count(Verdict verdict) {
      won += verdict == Verdict::won ? 1 : 0;
      turned_away += verdict == Verdict::in_progress ? 1 : 0;
    }
    void count(const char* result) {
      if (result == nullptr) return;
      ++replayed;
      sum += key_sum(result);
    }
  };

  [[nodiscard]] Setup setup() const {
    const bool grows = plan_.workload == Workload::grow || plan_.workload == Workload::memory;
    const std::size_t extra = plan_.workload == Workload::zipf ? plan_.records / 10 : 0;
    return {grows ? 0 : std::max(requests_.finished_count(), plan_.records) + extra,
            life_of(plan_)};
  }

  [[nodiscard]] std::size_t own_bytes() {
    if constexpr (TellsItsSize<Table>) return table_.bytes();
    return 0;
  }

  template <class Work>
  void in_threads(Work&& each) const {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < plan_.threads; ++t) threads.emplace_back([&each, t] { each(t); });
    for (std::thread& thread : threads) thread.join();
  }

  void finish_all() {
    const std::size_t count = requests_.finished_count();
    in_threads([&](std::size_t t) {
      Caller caller(table_);
      const std::size_t share = count / plan_.threads;
      const std::size_t last = t + 1 == plan_.threads ? count : share * (t + 1);
      std::array<Token, kTick> tokens;
      for (std::size_t first = share * t; first < last; first += kTick) {
        const std::size_t some = std::min(kTick, last - first);
        const char* const keys = requests_.finished.data() + first * kKeyBytes;
        for (std::size_t i = 0; i < some; ++i) tokens[i] = caller.claim(keys + i * kKeyBytes).token;
        tick(0);
        for (std::size_t i = 0; i < some; ++i)
          if (!caller.complete(keys + i * kKeyBytes, tokens[i]))
            refuse("a new key was not claimed and completed");
      }
    });
  }

  // Time goes on, by about a microsecond to a call.
  static constexpr std::size_t kTick = 64;
  static void tick(std::size_t call) {
    if (call % kTick == 0) race_clock().advance(Micros(kTick));
  }

  // Each call timed if the plan says so.
  template <class Call>
  void timed(Tally& tally, Call&& call) {
    if (!plan_.latency) return call();
    const std::uint64_t before = Stopwatch::ticks();
    call();
    tally.latency.record(Stopwatch::nanos(Stopwatch::ticks() - before));
  }

  void work(std::size_t t) {
    Caller caller(table_);
    Tally& tally = tallies_[t];
    const Stream& stream = requests_.streams[t];
    switch (plan_.workload) {
      case Workload::claim:
      case Workload::grow:
      case Workload::same:
      case Workload::lapse:
        return plan_.batch > 1 ? claim_batches(caller, tally, stream)
                               : claims(caller, tally, stream);
      case Workload::cycle:
        return cycles(caller, tally, stream);
      case Workload::replay:
        return plan_.batch > 1 ? replay_batches(caller, tally, stream)
                               : replays(caller, tally, stream);
      case Workload::hot:
        return hot(caller, tally, stream);
      case Workload::zipf:
        return mix(caller, tally, stream);
      case Workload::steady:
        return steady(t, caller, stream);
      case Workload::memory:
      case Workload::churn:
        return;
    }
  }

  void claims(Caller& caller, Tally& tally, const Stream& stream) {
    const std::size_t count = stream.size();
    for (std::size_t i = 0; i < count; ++i)
      timed(tally, [&] { tally.count(caller.claim(stream.key(i)).verdict); });
    tally.calls += count;
  }
  void claim_batches(Caller& caller, Tally& tally, const Stream& stream) {
    if constexpr (BatchesClaims<Table>) {
      std::array<Claim, kBatchMax> claims;
      for (std::size_t i = 0; i < stream.size(); i += plan_.batch) {
        const std::size_t count = std::min(plan_.batch, stream.size() - i);
        timed(tally, [&] { caller.claim_batch(stream.key(i), count, claims.data()); });
        for (std::size_t j = 0; j < count; ++j) tally.count(claims[j].verdict);
      }
      tally.calls += stream.size();
    }
  }
  void cycles(Caller& caller, Tally& tally, const Stream& stream) {
    constexpr std::size_t kBehind = 64;
    std::array<Token, kBehind> tokens{};
    const std::size_t count = stream.size();
    for (std::size_t i = 0; i < count + kBehind; ++i) {
      tick(i);
      timed(tally, [&] {
        Token& slot = tokens[i % kBehind];
        if (i >= kBehind) tally.completed += caller.complete(stream.key(i - kBehind), slot) ? 1 : 0;
        if (i >= count) return;
        const Claim claim = caller.claim(stream.key(i));
        slot = claim.token;
        tally.count(claim.verdict);
      });
    }
    tally.calls += count;
  }
  void replays(Caller& caller, Tally& tally, const Stream& stream) {
    const std::size_t count = stream.size();
    for (std::size_t i = 0; i < count; ++i)
      timed(tally, [&] { tally.count(caller.replay(stream.key(i))); });
    tally.calls += count;
  }
  void replay_batches(Caller& caller, Tally& tally, const Stream& stream) {
    if constexpr (BatchesReplays<Table>) {
      for (std::size_t i = 0; i < stream.size(); i += plan_.batch) {
        const std::size_t count = std::min(plan_.batch, stream.size() - i);
        timed(tally, [&] {
          caller.replay_batch(stream.key(i), count,
                              [&](const char* result) { tally.count(result); });
        });
      }
      tally.calls += stream.size();
    }
  }
  void hot(Caller& caller, Tally& tally, const Stream& stream) {
    for (std::size_t i = 0; i < kHotAsks; ++i)
      timed(tally, [&] { tally.count(caller.replay(stream.key(0))); });
    tally.calls += kHotAsks;
  }
  void mix(Caller& caller, Tally& tally, const Stream& stream) {
    const std::size_t count = stream.size();
    for (std::size_t i = 0; i < count; ++i) {
      timed(tally, [&] {
        if (stream.is_claim[i])
          tally.count(caller.claim(stream.key(i)).verdict);
        else
          tally.count(caller.replay(stream.key(i)));
      });
    }
    tally.calls += count;
  }
  // Time goes on by a microsecond to a claim, a millisecond at a time. A peer is told which of its
  // keys are dead; ours finds out.
  void steady(std::size_t t, Caller& caller, const Stream& stream) {
    Tally& tally = tallies_[t];
    constexpr std::size_t kStep = 1000;
    const std::size_t life = plan_.records / plan_.threads;
    const std::size_t count = stream.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (i % kStep == kStep - 1) race_clock().advance(Micros(kStep));
      if (i == life * 4 && t == 0) bytes_before_ = own_bytes();
      timed(tally, [&] {
        tally.count(caller.claim(stream.key(i)).verdict);
        if constexpr (NeedsExpiring<Table>) {
          if (i >= life) caller.expire(stream.key(i - life));
        }
      });
    }
    tally.calls += count;
  }

  void check(const Round& round) const {
    std::size_t won = 0;
    std::size_t asked = 0;
    std::size_t claims = 0;
    for (std::size_t t = 0; t < plan_.threads; ++t) {
      const Tally& tally = tallies_[t];
      const Stream& stream = requests_.streams[t];
      won += tally.won;
      asked += tally.won + tally.turned_away;
      claims += stream.is_claim.empty() ? stream.size() : stream.size() / 20;
      if (tally.sum != stream.sum) refuse("the replays do not add up");
      if (plan_.workload == Workload::cycle && tally.completed != stream.size())
        refuse("a completion was not taken");
    }
    if (plan_.workload == Workload::replay || plan_.workload == Workload::hot) return;
    if (asked != claims) refuse("a claim was neither won nor turned away");
    const std::size_t winners = plan_.workload == Workload::same ? plan_.records : claims;
    if (won != winners) refuse("not exactly one winner to each key");
    const std::size_t expected = winners + requests_.finished_count();
    const bool expires = plan_.workload == Workload::steady || plan_.workload == Workload::lapse;
    if (!expires && round.held != expected) refuse("records are missing, or too many");
  }

  // One thread; resident memory, after its allocator gave back what is free.
  Round weigh() {
    Round round;
    const Stream& stream = requests_.streams[0];
    const std::size_t count = stream.size();
    Caller caller(table_);
    std::vector<Token> tokens(count);
    const std::size_t empty = settled_resident_bytes();
    for (std::size_t i = 0; i < count; ++i) {
      tick(i);
      tokens[i] = caller.claim(stream.key(i)).token;
    }
    const std::size_t claimed = settled_resident_bytes();
    tick(0);
    for (std::size_t i = 0; i < count; ++i)
      if (!caller.complete(stream.key(i), tokens[i])) refuse("a completion was not taken");
    if constexpr (requires { table_.sweep(); }) table_.sweep();
    const std::size_t finished = settled_resident_bytes();
    round.held = table_.size();
    const auto per_record = [&](std::size_t bytes) {
      return (static_cast<double>(bytes) - static_cast<double>(empty)) / static_cast<double>(count);
    };
    round.claimed_bytes = per_record(claimed);
    round.finished_bytes = per_record(finished);
    return round;
  }

  // One thread, a thousand steps a second.
  Round churn() {
    constexpr std::size_t kSteps = 1000;
    const std::size_t each = plan_.rate / kSteps;
    const Stream& stream = requests_.streams[0];
    Caller caller(table_);
    Round round;
    Tally& tally = tallies_[0];
    const std::int64_t begin = Stopwatch::now();
    for (std::size_t second = 0; second < plan_.seconds; ++second) {
      for (std::size_t step = 0; step < kSteps; ++step) {
        for (std::size_t i = 0; i < each; ++i, ++tally.calls) {
          tally.count(caller.claim(stream.key(tally.calls % stream.size())).verdict);
          if constexpr (NeedsExpiring<Table>)
            if (tally.calls >= plan_.records)
              caller.expire(stream.key((tally.calls - plan_.records) % stream.size()));
        }
        race_clock().advance(Micros(each));
        const auto due = static_cast<std::int64_t>(second * kSteps + step + 1) * 1'000'000;
        const std::int64_t ahead = begin + due - Stopwatch::now();
        if (ahead > 0) system_clock().pause(Micros(ahead / 1000));
      }
      if (second < plan_.seconds / 10) continue;
      const std::size_t resident = settled_resident_bytes();
      round.resident_most = std::max(round.resident_most, resident);
      if (round.resident_least == 0 || resident < round.resident_least)
        round.resident_least = resident;
    }
    if (tally.won != tally.calls) refuse("an expired key was not won");
    round.mops =
        static_cast<double>(tally.calls) * 1e3 / static_cast<double>(Stopwatch::now() - begin);
    round.held = table_.size();
    return round;
  }

  const Plan plan_;
  const Requests& requests_;
  Table table_;
  std::vector<Tally> tallies_;
  std::size_t bytes_before_ = 0;
};

}  // namespace idem::bench
