// The test library itself: what failures say, and that injected faults do what their names say.
#include <gtest/gtest.h>

#include <memory>

#include "idem/testing/fault_store.hpp"
#include "idem/testing/matchers.hpp"
#include "idem/testing/reference_store.hpp"

namespace idem::testing {
namespace {

using namespace std::chrono_literals;

Request request(const char* key) { return {Key(key), Fingerprint::of_bytes("body")}; }

TEST(Matchers, AFailureNamesOutcomeAttemptAndLease) {
  VirtualClock clock;
  ServiceOptions options;
  options.clock = &clock;
  IdempotencyService service(std::make_shared<ReferenceStore>(clock), options);
  const auto first = service.claim(request("k"));
  EXPECT_THAT(::testing::PrintToString(first),
              ::testing::StartsWith("claimed (fresh, attempt 1, fence 1704067200000000"));
  EXPECT_THAT(::testing::PrintToString(first), ::testing::EndsWith("lease left 30s)"));
  EXPECT_EQ(::testing::PrintToString(service.claim(request("k"))),
            "in progress (attempt 1, retry after 30s)");
  EXPECT_EQ(::testing::PrintToString(service.claim(request(""))).substr(0, 22),
            "error invalid_argument");
}

TEST(Matchers, TellOneOutcomeFromAnother) {
  const result<ClaimOutcome> replay = ClaimOutcome(Replay{"paid", false, true, 4, {}});
  EXPECT_THAT(replay, ReplayOf("paid"));
  EXPECT_THAT(replay, ::testing::Not(ReplayOf("other")));
  EXPECT_THAT(replay, ::testing::Not(IsInProgress()));
  EXPECT_THAT(replay, ::testing::Not(HasError(errc::unknown)));
  const result<ClaimOutcome> broken = fail(errc::unknown, "no answer");
  EXPECT_THAT(broken, HasError(errc::unknown));
  EXPECT_THAT(broken, ::testing::Not(ReplayOf("paid")));
}

TEST(Describe, QuotesBytesAndCutsLongOnes) {
  EXPECT_EQ(quote(std::string_view("a\0\"\n", 4)), R"("a\x00\"\x0a")");
  EXPECT_THAT(quote(std::string(100, 'x')), ::testing::EndsWith("\"... (100 bytes)"));
  EXPECT_EQ(length(0s), "0s");
  EXPECT_EQ(length(-1500ms), "-1s500ms");
  EXPECT_EQ(length(25h + 1us), "25h1us");
}

// What a fault answers, and whether the store behind it was written.
struct FaultCase {
  Fault fault;
  Answer::State answer;
  errc code;
  bool applied;
};

TEST(FaultStore, EachFaultDoesWhatItsNameSays) {
  using State = Answer::State;
  const FaultCase cases[] = {{Fault::none, State::written, {}, true},
                             {Fault::refuse, State::failed, errc::unavailable, false},
                             {Fault::busy, State::failed, errc::busy, false},
                             {Fault::full, State::failed, errc::capacity, false},
                             {Fault::lose_request, State::failed, errc::unknown, false},
                             {Fault::lose_reply, State::failed, errc::unknown, true},
                             {Fault::apply_late, State::failed, errc::unknown, false},
                             {Fault::duplicate, State::stands, {}, true},
                             {Fault::delay, State::written, {}, true}};
  for (const FaultCase& one : cases) {
    VirtualClock clock;
    const auto behind = std::make_shared<ReferenceStore>(clock);
    FaultStore store(behind, clock);
    store.on_call(Verb::insert, 1, one.fault, 5s);
    Draft draft;
    draft.keep = 1h;
    Insert op{{"", "", "k"}, draft, {}};
    store.insert({&op, 1});
    EXPECT_EQ(op.answer.state, one.answer) << static_cast<int>(one.fault);
    if (one.answer == State::failed) {
      EXPECT_EQ(op.answer.error.code, one.code);
    }
    EXPECT_EQ(behind->stats().value().records(), one.applied ? 1u : 0u);
    store.calm();
    const bool late = one.fault == Fault::apply_late;
    EXPECT_EQ(behind->stats().value().records(), one.applied || late ? 1u : 0u);
    EXPECT_EQ(clock.now() - kVirtualStart, one.fault == Fault::delay ? Micros(5s) : Micros(0));
  }
}

TEST(FaultStore, WhatIsLateComesAfterTheNextCall) {
  VirtualClock clock;
  const auto behind = std::make_shared<ReferenceStore>(clock);
  FaultStore store(behind, clock);
  store.on_call(Verb::insert, 1, Fault::apply_late);
  Draft draft;
  draft.keep = 1h;
  Insert first{{"", "", "k"}, draft, {}};
  store.insert({&first, 1});
  Load look{{"", "", "k"}, {}};
  store.load({&look, 1});
  EXPECT_EQ(look.answer.state, Answer::State::absent);
  store.load({&look, 1});
  EXPECT_EQ(look.answer.state, Answer::State::stands);
}

TEST(FaultStore, TheSameSeedGivesTheSameFaults) {
  const auto faults = [](std::uint64_t seed) {
    VirtualClock clock;
    FaultStore store(std::make_shared<ReferenceStore>(clock), clock);
    store.at_random(seed, {.refuse = 0.3, .lose_reply = 0.3});
    std::string answers;
    for (int i = 0; i < 100; ++i) {
      Load op{{"", "", "k"}, {}};
      store.load({&op, 1});
      answers += op.answer.state != Answer::State::failed ? '.'
                 : op.answer.error.code == errc::unknown  ? '?'
                                                          : '!';
    }
    return answers;
  };
  EXPECT_EQ(faults(1), faults(1));
  EXPECT_NE(faults(1), faults(2));
  EXPECT_NE(faults(1).find('?'), std::string::npos);
  EXPECT_NE(faults(1).find('!'), std::string::npos);
}

}  // namespace
}  // namespace idem::testing
