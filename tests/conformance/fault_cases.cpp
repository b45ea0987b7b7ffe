// VerbContract: lost requests, lost replies and what others do between two calls.
//
// Each case puts its own FaultStore before the subject's store.
#include <functional>
#include <memory>
#include <vector>

#include "verb_matchers.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using namespace idem::testing;

// A service of its own over a store that goes wrong when told.
struct Faulty {
  Faulty(const StorePtr& behind, VirtualClock& store_clock, VirtualClock& caller_clock)
      : store(std::make_shared<FaultStore>(behind, store_clock)),
        service(store, options(caller_clock)) {}

  static ServiceOptions options(VirtualClock& caller_clock) {
    ServiceOptions made;
    made.clock = &caller_clock;
    return made;
  }

  Lease claimed(const Request& request) {
    auto outcome = service.claim(request);
    return std::move(std::get<Claimed>(outcome.value()).lease);
  }

  std::shared_ptr<FaultStore> store;
  IdempotencyService service;
};

// Whatever of a call is lost, the service repeats it with the same token: an equivalent answer.
TEST_P(VerbContract, ALostRequestOrReplyIsResolvedByRepeating) {
  IDEM_EXACT_ONLY();
  Faulty faulty(shared_store(), store_clock(), caller_clock());
  int n = 0;
  for (const Fault fault :
       {Fault::lose_request, Fault::lose_reply, Fault::apply_late, Fault::duplicate}) {
    const std::string key = "k" + std::to_string(n++);
    const std::uint64_t before = faulty.store->faults();
    faulty.store->on_call(Verb::insert, 1, fault);
    auto outcome = faulty.service.claim(request(key));
    ASSERT_THAT(outcome, IsClaimed(AttemptIs(1))) << n;
    Lease& lease = std::get<Claimed>(*outcome).lease;
    EXPECT_EQ(record(key).token(), lease.token());
    faulty.store->on_call(Verb::replace, 1, fault);
    EXPECT_THAT(faulty.service.renew(lease), IsRenewed()) << n;
    faulty.store->on_call(Verb::replace, 1, fault);
    EXPECT_THAT(faulty.service.complete(lease, "R"), IsCompleted()) << n;
    EXPECT_THAT(claim(key), ReplayOf("R"));

    Lease failing = faulty.claimed(request(key + "-fails"));
    faulty.store->on_call(Verb::replace, 1, fault);
    EXPECT_THAT(faulty.service.fail(failing, FailKind::final, "no"), IsFailRecorded()) << n;
    EXPECT_THAT(claim(key + "-fails"), FailedWith("no"));

    Lease released = faulty.claimed(request(key + "-released"));
    faulty.store->on_call(Verb::remove, 1, fault);
    EXPECT_THAT(faulty.service.release(released), IsReleased()) << n;
    EXPECT_THAT(service().get(Key(key + "-released")), IsAbsent());

    const Lease slow = faulty.claimed(request(key + "-slow"));
    advance(30s);
    faulty.store->on_call(Verb::replace, 1, fault);
    const Lease taken = faulty.claimed(request(key + "-slow"));
    EXPECT_EQ(taken.attempt(), 2u) << "counted once, though sent twice";
    EXPECT_EQ(record(key + "-slow").token(), taken.token());
    EXPECT_EQ(faulty.store->faults(), before + 6);
    faulty.store->calm();
    EXPECT_EQ(record(key + "-slow").token(), taken.token()) << "what came late found it changed";
  }
}

// Surely not applied: the caller is told so, and nothing happened.
TEST_P(VerbContract, ARefusedCallChangesNothingAndSaysSo) {
  IDEM_EXACT_ONLY();
  Faulty faulty(shared_store(), store_clock(), caller_clock());
  for (const auto& [fault, code] :
       {std::pair{Fault::refuse, errc::unavailable}, std::pair{Fault::busy, errc::busy},
        std::pair{Fault::full, errc::capacity}}) {
    const std::string key = "k" + std::string(to_string(code));
    faulty.store->on_call(Verb::insert, 1, fault);
    EXPECT_THAT(faulty.service.claim(request(key)), HasError(code));
    EXPECT_THAT(service().get(Key(key)), IsAbsent());
    Lease lease = faulty.claimed(request(key));
    const Record before = record(key);
    faulty.store->on_call(Verb::replace, 1, fault);
    EXPECT_THAT(faulty.service.complete(lease, "R"), HasError(code));
    EXPECT_EQ(record(key), before);
    EXPECT_THAT(faulty.service.complete(lease, "R"), IsCompleted()) << "a second try works";
  }
}

// The first insert was applied and its reply was lost; its repetition finds it, and the store
// refuses the rest. "Not applied" would be a lie: another attempt of the caller's would be refused
// by itself.
TEST_P(VerbContract, AClaimOnceInDoubtIsNeverToldAsNotApplied) {
  IDEM_EXACT_ONLY();
  Faulty faulty(shared_store(), store_clock(), caller_clock());
  faulty.store->on_call(Verb::insert, 1, Fault::lose_reply);
  faulty.store->on_call(Verb::replace, 1, Fault::refuse);
  EXPECT_THAT(faulty.service.claim(request("k")), IsClaimed(AttemptIs(1)));
  faulty.store->on_call(Verb::insert, 1, Fault::lose_reply);
  faulty.store->on_every_call(Verb::replace, Fault::refuse);
  EXPECT_THAT(faulty.service.claim(request("k2")), HasError(errc::unknown));
  faulty.store->calm();
}

// The store stays mute: `unknown` by the deadline, never "not claimed", never a run.
TEST_P(VerbContract, AMuteStoreEndsInUnknown) {
  IDEM_EXACT_ONLY();
  Faulty faulty(shared_store(), store_clock(), caller_clock());
  faulty.store->on_every_call(Verb::insert, Fault::lose_reply);
  CallOptions options;
  options.owner = Owner::random();
  options.timeout = 2s;
  const Time begin = caller_clock().now();
  EXPECT_THAT(faulty.service.claim(request("k"), options), HasError(errc::unknown));
  EXPECT_GE(caller_clock().now() - begin, 0s);
  EXPECT_LE(caller_clock().now() - begin, 2s + 100ms);
  bool ran = false;
  const auto outcome = faulty.service.execute(request("k2"), [&](Attempt&) {
    ran = true;
    return std::string("R");
  });
  EXPECT_THAT(outcome, HasError(errc::unknown));
  EXPECT_FALSE(ran) << "no business run on an unknown claim";
  faulty.store->calm();
  EXPECT_THAT(faulty.service.claim(request("k"), options), IsClaimed(AttemptIs(1)))
      << "the same token resumes what was applied";
}

TEST_P(VerbContract, AnUnknownCompleteCanBeRepeatedLater) {
  IDEM_EXACT_ONLY();
  Faulty faulty(shared_store(), store_clock(), caller_clock());
  for (const Fault fault : {Fault::lose_request, Fault::lose_reply}) {
    const std::string key = fault == Fault::lose_reply ? "applied" : "not applied";
    Lease lease = faulty.claimed(request(key));
    faulty.store->on_every_call(Verb::replace, fault);
    EXPECT_THAT(faulty.service.complete(lease, "R"), HasError(errc::unknown));
    faulty.store->calm();
    EXPECT_THAT(faulty.service.complete(lease, "R"), IsCompleted()) << key;
    EXPECT_THAT(claim(key), ReplayOf("R"));
  }
}

// The record was there when the claim looked and is gone when it writes: never a run without one.
TEST_P(VerbContract, ARecordThatGoesMeanwhileIsClaimedAnew) {
  IDEM_EXACT_ONLY();
  Faulty faulty(shared_store(), store_clock(), caller_clock());
  Lease slow = claimed("k");
  advance(30s);
  faulty.store->before_call(Verb::replace, 1,
                            [&] { EXPECT_THAT(service().release(slow), IsReleased()); });
  const Lease lease = faulty.claimed(request("k"));
  EXPECT_EQ(lease.attempt(), 1u);
  EXPECT_EQ(record("k").token(), lease.token());
}

// Two take over at once: the one whose write comes second is told of the first.
TEST_P(VerbContract, OfTwoTakeoversOneWins) {
  IDEM_EXACT_ONLY();
  Faulty faulty(shared_store(), store_clock(), caller_clock());
  const Lease slow = claimed("k");
  advance(30s);
  std::optional<Lease> first;
  faulty.store->before_call(Verb::replace, 1, [&] { first.emplace(claimed("k")); });
  EXPECT_THAT(faulty.service.claim(request("k")), IsInProgress(AttemptIs(2)));
  EXPECT_EQ(record("k").token(), first->token());
}

// The first result comes in between: it is replayed, not run again.
TEST_P(VerbContract, ACompleteThatComesInBetweenIsReplayed) {
  IDEM_EXACT_ONLY();
  Faulty faulty(shared_store(), store_clock(), caller_clock());
  Lease slow = claimed("k");
  advance(30s);
  faulty.store->before_call(Verb::replace, 1,
                            [&] { EXPECT_THAT(service().complete(slow, "R"), IsCompleted()); });
  EXPECT_THAT(faulty.service.claim(request("k")), ReplayOf("R"));

  Lease failing = claimed("k2");
  ASSERT_THAT(service().fail(failing, FailKind::retryable, "503"), IsFailRecorded());
  faulty.store->before_call(Verb::replace, 1, [&] {
    Lease retry = claimed("k2");
    EXPECT_THAT(service().complete(retry, "R2"), IsCompleted());
  });
  EXPECT_THAT(faulty.service.claim(request("k2")), ReplayOf("R2"));
}

// A takeover comes between a slow owner's look and its write: the write must not land.
TEST_P(VerbContract, ATakeoverInBetweenMakesTheOwnersWriteLost) {
  IDEM_EXACT_ONLY();
  Faulty faulty(shared_store(), store_clock(), caller_clock());
  using Report = std::function<bool(Lease&)>;
  const std::vector<std::pair<Verb, Report>> reports{
      {Verb::replace,
       [&](Lease& lease) {
         return std::holds_alternative<Lost>(*faulty.service.complete(lease, "ghost"));
       }},
      {Verb::replace,
       [&](Lease& lease) {
         return std::holds_alternative<Lost>(*faulty.service.fail(lease, FailKind::final, "no"));
       }},
      {Verb::replace,
       [&](Lease& lease) { return std::holds_alternative<Lost>(*faulty.service.renew(lease)); }},
      {Verb::remove,
       [&](Lease& lease) { return std::holds_alternative<Lost>(*faulty.service.release(lease)); }}};
  int n = 0;
  for (const auto& [verb, report] : reports) {
    const std::string key = "k" + std::to_string(n++);
    const Lease known = faulty.claimed(request(key));
    Lease slow = Lease::adopt(request(key), known.token());
    advance(30s);
    std::optional<Lease> successor;
    faulty.store->before_call(verb, 1, [&] { successor.emplace(claimed(key)); });
    EXPECT_TRUE(report(slow)) << key;
    ASSERT_TRUE(successor.has_value());
    EXPECT_EQ(record(key).token(), successor->token());
    EXPECT_EQ(record(key).status, Status::processing);
  }
}

// What it costs: one round trip for the common case of each verb.
TEST_P(VerbContract, TheCommonCasesTakeOneRoundTrip) {
  IDEM_EXACT_ONLY();
  auto recorder = std::make_shared<RecordingStore>(shared_store());
  ServiceOptions options;
  options.clock = &caller_clock();
  IdempotencyService counted(recorder, options);
  const auto trips = [&](auto&& call) {
    recorder->clear();
    call();
    return recorder->calls();
  };
  std::optional<Lease> lease;
  EXPECT_EQ(trips([&] {
              lease.emplace(std::move(std::get<Claimed>(*counted.claim(request("k"))).lease));
            }),
            1u);
  EXPECT_EQ(trips([&] { EXPECT_THAT(counted.claim(request("k")), IsInProgress()); }), 1u);
  EXPECT_EQ(trips([&] { EXPECT_THAT(counted.renew(*lease), IsRenewed()); }), 1u);
  EXPECT_EQ(trips([&] { EXPECT_THAT(counted.complete(*lease, "R"), IsCompleted()); }), 1u);
  EXPECT_EQ(trips([&] { EXPECT_THAT(counted.claim(request("k")), ReplayOf("R")); }), 1u);
  EXPECT_EQ(trips([&] { EXPECT_THAT(counted.claim(request("k", "x")), IsMismatch()); }), 1u);
  std::vector<Request> many;
  for (int i = 0; i < 50; ++i) many.push_back(request("m" + std::to_string(i)));
  EXPECT_EQ(trips([&] { EXPECT_EQ(counted.claim_many(many).size(), 50u); }), 1u);
}

}  // namespace
}  // namespace idem::conformance
