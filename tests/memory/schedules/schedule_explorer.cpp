#include "schedule_explorer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <optional>
#include <semaphore>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "idem/pause_point.hpp"

#ifndef IDEM_PAUSE_POINTS
#error "schedules need a build with IDEM_PAUSE_POINTS"
#endif

namespace idem::schedules {
namespace {

constexpr std::size_t kNobody = kThreadsMost;
constexpr const char* kEnd = "its end";

// What a thread did between two choices.
struct Step {
  std::size_t thread;
  const char* until;  // the pause point it came to; kEnd
};

// A place where more than one thread could go on.
struct Choice {
  std::size_t taken;  // of the candidates, in their order
  std::size_t of;
  std::size_t step;
  const char* at;  // where the thread before stood

  // The same place, found again.
  [[nodiscard]] bool is(const Choice& other) const {
    return of == other.of && step == other.step && std::string_view(at) == other.at;
  }
};

[[nodiscard]] std::string text_of(const std::vector<Step>& steps) {
  std::string text;
  for (std::size_t i = 0; i < steps.size();) {
    std::size_t count = 1;
    while (i + count < steps.size() && steps[i + count].thread == steps[i].thread) ++count;
    text +=
        (text.empty() ? "" : ",") + std::to_string(steps[i].thread) + "x" + std::to_string(count);
    i += count;
  }
  return text;
}

// A line for each step, but one for those that are the same.
[[nodiscard]] std::string trace_of(const std::vector<Step>& steps) {
  std::string text;
  for (std::size_t i = 0; i < steps.size();) {
    std::size_t count = 1;
    while (i + count < steps.size() && steps[i + count].thread == steps[i].thread &&
           steps[i + count].until == steps[i].until)
      ++count;
    text += "  thread " + std::to_string(steps[i].thread) + " to " + steps[i].until;
    text += count == 1 ? "\n" : ", " + std::to_string(count) + " times\n";
    i += count;
  }
  return text;
}

// The thread of each step; nullopt: not a schedule.
[[nodiscard]] std::optional<std::vector<std::size_t>> steps_in(std::string_view text) {
  std::vector<std::size_t> steps;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::size_t thread = 0;
    std::size_t count = 0;
    const auto who = std::from_chars(at, end, thread);
    if (who.ec != std::errc() || who.ptr == end || *who.ptr != 'x') return std::nullopt;
    const auto many = std::from_chars(who.ptr + 1, end, count);
    if (many.ec != std::errc() || thread >= kThreadsMost || count > 1'000'000) return std::nullopt;
    steps.insert(steps.end(), count, thread);
    at = many.ptr;
    if (at != end && (*at++ != ',' || at == end)) return std::nullopt;
  }
  return steps;
}

class Explorer {
 public:
  Explorer(const Options& options, const std::function<Trial()>& make)
      : options_(options), make_(make) {
    if (!options.replay.empty()) {
      const auto steps = steps_in(options.replay);
      if (!steps)
        report_.broken = "not a schedule: " + options.replay;
      else
        forced_ = *steps;
    }
    for (std::size_t i = 0; i < kThreadsMost; ++i)
      workers_[i].thread = std::thread([this, i] { work(i); });
    running = this;
    for (std::size_t i = 0; i < kCrashes.size(); ++i)
      before_[i] = std::signal(kCrashes[i], &Explorer::crashed);
    // release: pairs with the load at the pause point
    pause_point_hook.store(&Explorer::at_point, std::memory_order_release);
  }
  ~Explorer() {
    pause_point_hook.store(nullptr, std::memory_order_release);  // as above
    for (std::size_t i = 0; i < kCrashes.size(); ++i) std::signal(kCrashes[i], before_[i]);
    running = nullptr;
    stopping_ = true;
    for (Worker& worker : workers_) {
      worker.go.release();
      worker.thread.join();
    }
  }
  Explorer(const Explorer&) = delete;
  Explorer& operator=(const Explorer&) = delete;

  static void unobserved(const std::function<void()>& work) {
    const Self mine = std::exchange(self, Self{});
    work();
    self = mine;
  }

  Report run() {
    report_.schedules.assign(options_.preemptions + 1, 0);
    if (!options_.replay.empty()) {
      if (report_.broken.empty()) run_one();
      return report_;
    }
    for (bound_ = 0; bound_ <= options_.preemptions && report_.broken.empty(); ++bound_) {
      choices_.clear();
      do {
        run_one();
      } while (report_.broken.empty() && next());
    }
    return report_;
  }

 private:
  struct Worker {
    std::binary_semaphore go{0};
    std::thread thread;
    bool alive = false;  // in this trial
    std::size_t points = 0;
  };
  // Which of the explorer's threads the calling one is.
  struct Self {
    Explorer* explorer = nullptr;
    std::size_t index = kNobody;
  };
  static thread_local Self self;
  static Explorer* running;
  static constexpr std::array<int, 4> kCrashes{SIGSEGV, SIGBUS, SIGFPE, SIGABRT};

  static void at_point(const char* name) {
    if (self.explorer != nullptr) self.explorer->pass(self.index, name);
  }

  // A crash tells its schedule, as well as a broken process can.
  static void crashed(int signal) {
    std::signal(signal, SIG_DFL);
    if (running->report_.broken.empty()) running->report_.broken = "a crash";
    running->report_.trace = trace_of(running->steps_);
    running->give_up("the step after these crashed");
  }

  void work(std::size_t index) {
    self = {this, index};
    for (;;) {
      workers_[index].go.acquire();
      if (stopping_) return;
      try {
        trial_.threads[index]();
      } catch (const std::exception& thrown) {
        say_broken(std::string("a thread threw: ") + thrown.what());
      }
      workers_[index].alive = false;
      note(index, kEnd);
      const std::size_t next = choose(index);
      if (next == kNobody)
        idle_.release();
      else
        workers_[next].go.release();
    }
  }

  // Stops the calling thread, or lets it go on.
  void pass(std::size_t index, const char* name) {
    note(index, name);
    if (++workers_[index].points > options_.points_most) hangs(index);
    const std::size_t next = choose(index);
    if (next == index) return;
    workers_[next].go.release();
    workers_[index].go.acquire();
  }

  void note(std::size_t index, const char* until) {
    if (!loose_) steps_.push_back({index, until});
  }

  // From now on each thread makes a step in turn, so that all of them end.
  void hangs(std::size_t index) {
    if (!loose_)
      say_broken("thread " + std::to_string(index) + " passed more than " +
                 std::to_string(options_.points_most) +
                 " points without ending: it waits for a thread that is stopped");
    loose_ = true;
    if (workers_[index].points > 10 * options_.points_most) give_up("and does not end either way");
  }

  void say_broken(const std::string& what) {
    if (report_.broken.empty()) report_.broken = what;
  }

  [[noreturn]] void give_up(const char* why) {
    std::signal(SIGABRT, SIG_DFL);
    report_.schedule = text_of(steps_);
    std::fprintf(stderr, "%s\n%s\n", describe(report_).c_str(), why);
    std::abort();
  }

  // Who goes on after that thread; kNobody: all have ended.
  std::size_t choose(std::size_t before) {
    std::array<std::size_t, kThreadsMost> candidates{};
    std::size_t count = 0;
    const bool free = before == kNobody || !workers_[before].alive;
    if (!free && !loose_) candidates[count++] = before;
    for (std::size_t i = 1; i <= kThreadsMost; ++i) {
      const std::size_t other = (before == kNobody ? i - 1 : before + i) % kThreadsMost;
      const bool may = other != before || loose_;
      if (may && workers_[other].alive && (free || loose_ || preempted_ < bound_))
        candidates[count++] = other;
    }
    if (count == 0) return kNobody;
    const std::size_t chosen = loose_ ? candidates[0] : pick(before, candidates, count);
    if (!free && !loose_ && chosen != before) ++preempted_;
    return chosen;
  }

  std::size_t pick(std::size_t before, const std::array<std::size_t, kThreadsMost>& candidates,
                   std::size_t count) {
    const std::size_t step = steps_.size();
    if (step < forced_.size()) {
      const std::size_t forced = forced_[step];
      if (workers_[forced].alive) return forced;
      say_broken("the schedule does not fit: thread " + std::to_string(forced) +
                 " has ended before step " + std::to_string(step));
    }
    if (count == 1) return candidates[0];
    const Choice here{0, count, step, before == kNobody ? "the beginning" : steps_.back().until};
    if (depth_ == choices_.size()) choices_.push_back(here);
    if (!choices_[depth_].is(here))
      say_broken("the trial is not the same each time: cannot explore it");
    return candidates[choices_[depth_++].taken % count];
  }

  // Moves on to the next vector of choices; false: that was the last.
  bool next() {
    while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().of)
      choices_.pop_back();
    if (choices_.empty()) return false;
    ++choices_.back().taken;
    return true;
  }

  void run_one() {
    trial_ = make_();
    steps_.clear();
    depth_ = 0;
    preempted_ = 0;
    loose_ = false;
    for (std::size_t i = 0; i < kThreadsMost; ++i) {
      workers_[i].alive = i < trial_.threads.size();
      workers_[i].points = 0;
    }
    if (const std::size_t first = choose(kNobody); first != kNobody) {
      workers_[first].go.release();
      // A step that never comes to a pause point again.
      if (!idle_.try_acquire_for(std::chrono::seconds(60))) give_up("a step does not end");
    }
    tell(trial_.verdict());
    trial_ = {};
  }

  void tell(const Verdict& verdict) {
    if (!verdict.broken.empty()) say_broken(verdict.broken);
    // A round of a higher bound goes through those of the lower ones again.
    if (options_.replay.empty() && preempted_ != bound_ && report_.broken.empty()) return;
    if (preempted_ >= report_.schedules.size()) report_.schedules.resize(preempted_ + 1);
    ++report_.schedules[preempted_];
    if (!verdict.outcome.empty()) ++report_.outcomes[verdict.outcome];
    report_.longest = std::max(report_.longest, steps_.size());
    for (const Step& step : steps_)
      if (step.until != kEnd) report_.points.insert(step.until);
    if (report_.broken.empty() && options_.replay.empty()) return;
    report_.schedule = text_of(steps_);
    report_.trace = trace_of(steps_);
  }

  const Options& options_;
  const std::function<Trial()>& make_;
  std::vector<std::size_t> forced_;
  Report report_;
  std::size_t bound_ = 0;
  std::vector<Choice> choices_;

  // Of the trial that runs; used by one thread at a time, which got it from the one before.
  Trial trial_;
  std::vector<Step> steps_;
  std::size_t depth_ = 0;  // choices made
  std::size_t preempted_ = 0;
  bool loose_ = false;
  bool stopping_ = false;
  std::array<Worker, kThreadsMost> workers_;
  std::binary_semaphore idle_{0};
  std::array<void (*)(int), kCrashes.size()> before_{};  // who handled those signals
};

thread_local Explorer::Self Explorer::self;
Explorer* Explorer::running = nullptr;

}  // namespace

std::uint64_t Report::total() const {
  return std::accumulate(schedules.begin(), schedules.end(), std::uint64_t{0});
}

Report explore(const Options& options, const std::function<Trial()>& make) {
  return Explorer(options, make).run();
}

void unobserved(const std::function<void()>& work) { Explorer::unobserved(work); }

std::string describe(const Report& report) {
  std::ostringstream text;
  if (report.broken.empty()) {
    text << report.total() << " schedules (";
    for (std::size_t i = 0; i < report.schedules.size(); ++i)
      text << (i == 0 ? "" : " + ") << report.schedules[i];
    text << " by preemptions), up to " << report.longest << " steps, " << report.points.size()
         << " pause points";
    for (const auto& [outcome, count] : report.outcomes) text << "; " << outcome << ": " << count;
    return text.str();
  }
  text << "broken: " << report.broken << "\nafter " << report.total()
       << " schedules; repeat it with IDEM_SCHEDULE=" << report.schedule << "\n"
       << report.trace;
  return text.str();
}

}  // namespace idem::schedules
