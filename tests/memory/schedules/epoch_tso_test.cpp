// The epochs' argument (backends/memory/epoch.hpp) under total store order, exhaustively.
//
// A pin is a plain store where the system has membarrier: it may wait in its processor's store
// buffer while its thread reads on. No schedule of the real code on one processor shows that, and
// ThreadSanitizer knows no membarrier. So here is the protocol as a machine of small steps, each
// thread with a store buffer of its own, and a search through all states it can get into: the
// object must never be used by a reader after it was handed out again.
//
// The machine is that of Owens, Sarkar and Sewell, "A better x86 memory model: x86-TSO" (2009):
// stores enter the buffer's end, a load takes the newest of its own buffer, else memory; a buffer
// writes its oldest store to memory at any time; a locked step and a fence wait until it is empty.
// membarrier empties the other threads' buffers one by one, each at some time during the call.
// Orders weaker than that (ARM) are not in the model.
//
// Four threads are enough. The reader, the retirer and the reclaimer pin once: what an earlier
// round of theirs left in their slots could only hold the epoch back, and an advance may fail at
// any time as it is. And all advances are one thread's: between the reading and the CAS of one that
// takes there is no other one that takes, and one that fails changes nothing.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace idem::memory_test {
namespace {

constexpr std::size_t kThreads = 4;  // reader, retirer, reclaimer, advancer
constexpr std::size_t kBuffer = 2;   // stores that may wait: a pin and the unpin behind it
// The epoch G is always called this: when it moves on, everything else grows older by one, so the
// search is not bounded by a number of epochs. Of a pin only matters whether it is at G: an advance
// from an older epoch fails, whatever it saw. Of a noted epoch, how far it is behind, up to three.
constexpr std::uint8_t kNow = 4;
constexpr std::uint8_t kBehind = 1;
constexpr std::size_t kStatesMost = 8'000'000;  // a guard: about 1 GB
constexpr std::uint8_t kNowhere = 255;
constexpr std::uint8_t kUsed = 2;  // after it was handed out again: what must not be

// How the protocol is built; as it stands here, as the store does.
struct Protocol {
  bool barrier = true;      // an advance makes all threads pass a full barrier
  bool look_behind = true;  // and looks at the slots after it, not only before
  bool fenced_pin = false;  // a pin is a sequentially consistent store
  bool tag_behind = true;   // the tag is read after the unlinking, not before
  std::uint8_t epochs = 2;  // that lie between a retirement and its reuse
};

enum class Do : std::uint8_t {
  read_epoch,  // t = G
  pin,         // slot = t, into the buffer
  fence,
  follow,   // held = the link leads to the object
  use,      // what is held must not have been handed out again
  unpin,    // slot = 0, into the buffer
  unlink,   // CAS
  tag,      // g = G
  bury,     // CAS: onto the stack of g
  look,     // at one slot: pinned elsewhere than at g: no advance
  barrier,  // in one of the threads that had none yet; all of them: go on
  give_up,  // somebody else is pinned elsewhere
  advance,  // CAS: G from g to g + 1
  detach,   // exchange: the stack that only holds what is old enough; hand it out
  again,
  stop,
};

struct Instruction {
  Do what;
  std::uint8_t who = 0;  // look, barrier: which thread's
};
using Program = std::vector<Instruction>;

struct Thread {
  std::uint8_t at = 0;  // in its program
  std::uint8_t t = 0;
  std::uint8_t g = 0;
  std::uint8_t held = 0;
  std::array<std::uint8_t, kBuffer> buffer{};  // values for its slot, oldest first
  std::uint8_t buffered = 0;
  std::uint8_t passed = 0;  // the threads that passed its barrier, a bit each
};

struct State {
  std::uint8_t linked = 1;
  std::uint8_t buried = kNowhere;  // in the stack of how many epochs ago, modulo 4
  std::uint8_t reused = 0;
  std::array<std::uint8_t, kThreads> slots{};
  std::array<Thread, kThreads> threads{};
};
static_assert(sizeof(State) == 3 + kThreads * (1 + sizeof(Thread)) && alignof(State) == 1);

struct StateHash {
  std::size_t operator()(const State& state) const {
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(&state), sizeof(state)});
  }
};
struct SameState {
  bool operator()(const State& a, const State& b) const {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
  }
};

constexpr const char* kNames[] = {"reads the epoch",
                                  "pins",
                                  "passes a fence",
                                  "follows the link",
                                  "uses it",
                                  "unpins",
                                  "unlinks it",
                                  "notes the epoch",
                                  "buries it",
                                  "looks at slot",
                                  "barrier in",
                                  "gives up",
                                  "moves the epoch on",
                                  "detaches a stack",
                                  "begins again",
                                  "stops"};

class Machine {
 public:
  explicit Machine(const Protocol& protocol) : protocol_(protocol) {
    Program enter{{Do::read_epoch}, {Do::pin}};
    if (protocol.fenced_pin) enter.push_back({Do::fence});
    Program& reader = programs_[0];
    reader = enter;
    reader.insert(reader.end(), {{Do::follow}, {Do::use}, {Do::stop}});
    Program& retirer = programs_[1];
    retirer = enter;
    retirer.push_back({protocol.tag_behind ? Do::unlink : Do::tag});
    retirer.push_back({protocol.tag_behind ? Do::tag : Do::unlink});
    retirer.insert(retirer.end(), {{Do::bury}, {Do::unpin}, {Do::stop}});
    Program& reclaimer = programs_[2];
    reclaimer = enter;
    reclaimer.insert(reclaimer.end(), {{Do::tag}, {Do::detach}, {Do::unpin}, {Do::stop}});
    advance(programs_[3]);
    programs_[3].push_back({Do::again});
  }

  // The shortest way to a use of what was handed out again; empty: there is none.
  [[nodiscard]] std::vector<std::string> search() {
    const State first;
    parents_.emplace(first, Parent{first, kNowhere, {}});
    open_.push_back(first);
    while (!open_.empty() && parents_.size() < kStatesMost) {
      const State state = open_.front();
      open_.pop_front();
      for (std::uint8_t who = 0; who < kThreads; ++who) {
        if (write_one(state, who)) return way_to(*violation_);
        if (make_step(state, who)) return way_to(*violation_);
      }
    }
    EXPECT_TRUE(open_.empty()) << "too many states";
    return {};
  }
  [[nodiscard]] std::size_t states() const { return parents_.size(); }

 private:
  // How a state was reached first.
  struct Parent {
    State state;
    std::uint8_t who;
    std::optional<Instruction> step;  // none: a store of its buffer reached memory
  };

  // try_advance(). Its look before the barrier is left out, unless it is the only one: it spares
  // system calls, and a look may find at any time that the epoch cannot be moved on.
  void advance(Program& program) const {
    const Program look{{Do::look, 0}, {Do::look, 1}, {Do::look, 2}};
    program.push_back({Do::tag});
    if (!protocol_.barrier || !protocol_.look_behind)
      program.insert(program.end(), look.begin(), look.end());
    if (protocol_.barrier) program.push_back({Do::barrier});
    if (protocol_.barrier && protocol_.look_behind)
      program.insert(program.end(), look.begin(), look.end());
    program.push_back({Do::advance});
  }
  // Its place behind try_advance(): the epoch cannot be moved on now.
  void give_up(Thread& thread, const Program& program) const {
    while (program[thread.at - 1U].what != Do::advance) ++thread.at;
    thread.g = 0;
  }

  [[nodiscard]] static std::uint8_t modulo_4(unsigned value) {
    return static_cast<std::uint8_t>(value % 4);
  }
  // How many epochs ago; takes it, so that what is not needed any more tells no states apart.
  [[nodiscard]] static unsigned ago(std::uint8_t& epoch) {
    return kNow - unsigned{std::exchange(epoch, std::uint8_t{0})};
  }

  static void grow_older(State& state) {
    const auto older = [](std::uint8_t& pinned) {
      if (pinned == kNow) pinned = kBehind;
    };
    for (std::uint8_t& slot : state.slots) older(slot);
    for (Thread& thread : state.threads) {
      older(thread.t);
      for (std::uint8_t& value : thread.buffer) older(value);
      if (thread.g > kBehind) --thread.g;
    }
    if (state.buried != kNowhere) state.buried = modulo_4(state.buried + 1U);
  }

  // A buffer's oldest store reaches memory.
  static void drain_one(State& state, std::uint8_t who) {
    Thread& thread = state.threads[who];
    state.slots[who] = thread.buffer[0];
    for (std::size_t i = 1; i < kBuffer; ++i) thread.buffer[i - 1] = thread.buffer[i];
    thread.buffer[kBuffer - 1] = 0;
    --thread.buffered;
  }
  // False: no room, until one is written.
  static bool put(Thread& thread, std::uint8_t value) {
    if (thread.buffered == kBuffer) return false;
    thread.buffer[thread.buffered++] = value;
    return true;
  }

  bool write_one(const State& before, std::uint8_t who) {
    if (before.threads[who].buffered == 0) return false;
    State state = before;
    drain_one(state, who);
    return reach(state, {before, who, {}});
  }

  bool make_step(const State& before, std::uint8_t who) {
    const Instruction step = programs_[who][before.threads[who].at];
    if (step.what == Do::barrier) return pass_barriers(before, who);
    // Somebody else may be pinned somewhere.
    if (step.what == Do::look && make_step(before, who, {Do::give_up})) return true;
    return make_step(before, who, step);
  }

  // A thread whose buffer is empty passes at once: later it could only do more. Each of the others
  // may be next.
  bool pass_barriers(State before, std::uint8_t who) {
    Thread& caller = before.threads[who];
    const State first = before;
    for (std::uint8_t other = 0; other < kThreads; ++other)
      if (before.threads[other].buffered == 0) pass_barrier(caller, other);
    if (caller.at != first.threads[who].at)
      return reach(before, {first, who, Instruction{Do::barrier, kThreads}});
    for (std::uint8_t other = 0; other < kThreads; ++other) {
      if ((caller.passed >> other & 1U) != 0) continue;
      State state = before;
      while (state.threads[other].buffered != 0) drain_one(state, other);
      pass_barrier(state.threads[who], other);
      if (reach(state, {first, who, Instruction{Do::barrier, other}})) return true;
    }
    return false;
  }
  static void pass_barrier(Thread& caller, std::uint8_t other) {
    caller.passed = static_cast<std::uint8_t>(caller.passed | 1U << other);
    if (caller.passed != (1U << kThreads) - 1U) return;
    caller.passed = 0;
    ++caller.at;
  }

  bool make_step(const State& before, std::uint8_t who, const Instruction& step) {
    State state = before;
    ++state.threads[who].at;
    if (step.what == Do::stop) return false;
    const bool any = step.what == Do::read_epoch || step.what == Do::pin ||
                     step.what == Do::fence || step.what == Do::follow || step.what == Do::use ||
                     step.what == Do::unpin || step.what == Do::again;
    if (!(any ? walk(state, who, step) : reclaim(state, who, step))) return false;
    return reach(state, {before, who, step});
  }

  // What everybody does. False: not now.
  bool walk(State& state, std::uint8_t who, const Instruction& step) {
    Thread& thread = state.threads[who];
    switch (step.what) {
      case Do::read_epoch:
        thread.t = kNow;
        return true;
      case Do::pin:
        return put(thread, std::exchange(thread.t, std::uint8_t{0}));
      case Do::fence:
        return thread.buffered == 0;
      case Do::follow:
        thread.held = state.linked;
        return true;
      case Do::use:
        if (thread.held != 0 && state.reused != 0) state.reused = kUsed;
        thread.held = 0;
        return true;
      case Do::unpin:
        return put(thread, 0);
      default:
        thread.at = 0;
        return true;
    }
  }

  // What retirer and reclaimer do.
  bool reclaim(State& state, std::uint8_t who, const Instruction& step) {
    Thread& thread = state.threads[who];
    const bool locked = step.what == Do::unlink || step.what == Do::bury ||
                        step.what == Do::advance || step.what == Do::detach;
    if (locked && thread.buffered != 0) return false;
    switch (step.what) {
      case Do::unlink:
        state.linked = 0;
        return true;
      case Do::tag:
        thread.g = kNow;
        return true;
      case Do::bury:
        state.buried = modulo_4(ago(thread.g));
        return true;
      case Do::look: {
        std::uint8_t seen = state.slots[step.who];
        if (step.who == who && thread.buffered != 0) seen = thread.buffer[thread.buffered - 1U];
        if (seen == 0 || (seen == kNow && thread.g == kNow)) return true;
        give_up(thread, programs_[who]);
        return true;
      }
      case Do::give_up:
        give_up(thread, programs_[who]);
        return true;
      case Do::advance:
        if (std::exchange(thread.g, std::uint8_t{0}) == kNow) grow_older(state);
        return true;
      case Do::detach:
        // Of the tags that share this stack only those so many epochs old may be in it.
        if (state.buried == modulo_4(ago(thread.g) + protocol_.epochs)) {
          state.buried = kNowhere;
          state.reused = 1;
        }
        return true;
      default:
        return false;  // stopped
    }
  }

  // True: that state breaks it.
  bool reach(const State& state, const Parent& parent) {
    const bool fresh = parents_.emplace(state, parent).second;
    if (state.reused == kUsed) violation_ = state;
    // Where the reader has come to its end, or can come to nothing, nothing can break any more.
    const Thread& reader = state.threads[0];
    const bool done = programs_[0][reader.at].what == Do::stop;
    if (fresh && !done && (state.linked != 0 || reader.held != 0)) open_.push_back(state);
    return violation_.has_value();
  }

  [[nodiscard]] static std::string text_of(const Parent& parent) {
    const std::string who = kThreadNames[parent.who];
    if (!parent.step) return who + "'s store reaches memory";
    const std::string text = who + " " + kNames[static_cast<std::size_t>(parent.step->what)];
    const bool whose = parent.step->what == Do::look || parent.step->what == Do::barrier;
    return whose ? text + " " + kThreadNames[parent.step->who] : text;
  }

  [[nodiscard]] std::vector<std::string> way_to(const State& last) const {
    std::vector<std::string> way;
    for (State state = last;;) {
      const Parent& parent = parents_.at(state);
      if (parent.who == kNowhere) break;
      way.insert(way.begin(), text_of(parent));
      state = parent.state;
    }
    return way;
  }

  static constexpr const char* kThreadNames[] = {"reader", "retirer", "reclaimer", "advancer",
                                                 "all"};
  const Protocol protocol_;
  std::array<Program, kThreads> programs_;
  std::unordered_map<State, Parent, StateHash, SameState> parents_;
  std::deque<State> open_;
  std::optional<State> violation_;
};

// What was searched, and the shortest way to a use of what was handed out again: empty if the
// protocol holds.
[[nodiscard]] std::string way_of(const Protocol& protocol, const char* what) {
  Machine machine(protocol);
  const std::vector<std::string> way = machine.search();
  std::string text;
  for (const std::string& step : way) text += "  " + step + "\n";
  std::printf("%s: %zu states%s\n%s", what, machine.states(),
              way.empty() ? "" : ", broken:", text.c_str());
  return text;
}

TEST(EpochTsoTest, PlainPinsHoldWithABarrierInEveryAdvance) { EXPECT_EQ(way_of({}, "plain"), ""); }

TEST(EpochTsoTest, FencedPinsHoldWithoutOne) {
  Protocol protocol;
  protocol.barrier = false;
  protocol.fenced_pin = true;
  EXPECT_EQ(way_of(protocol, "fenced"), "");
}

// The reader's pin waits in its buffer while the reader has the link already.
TEST(EpochTsoTest, PlainPinsAreBrokenWithoutABarrier) {
  Protocol protocol;
  protocol.barrier = false;
  EXPECT_NE(way_of(protocol, "plain, no barrier"), "");
}

// What the barrier made visible must be looked at.
TEST(EpochTsoTest, ALookBeforeTheBarrierOnlyIsNotEnough) {
  Protocol protocol;
  protocol.look_behind = false;
  EXPECT_NE(way_of(protocol, "plain, no look behind the barrier"), "");
}

TEST(EpochTsoTest, OneEpochIsNotEnough) {
  Protocol protocol;
  protocol.epochs = 1;
  EXPECT_NE(way_of(protocol, "reuse one epoch later"), "");
}

// With four stacks the one of three epochs ago may be the one of the next.
TEST(EpochTsoTest, ThreeEpochsAreTooManyForFourStacks) {
  Protocol protocol;
  protocol.epochs = 3;
  EXPECT_NE(way_of(protocol, "reuse three epochs later"), "");
}

TEST(EpochTsoTest, ATagReadBeforeTheUnlinkingIsTooOld) {
  Protocol protocol;
  protocol.tag_behind = false;
  EXPECT_NE(way_of(protocol, "tag before the unlinking"), "");
}

}  // namespace
}  // namespace idem::memory_test
