// The table of outcomes and statuses, on a virtual clock and without sockets.
#include <gmock/gmock.h>

#include "idem/http.hpp"
#include "idem/testing/fault_store.hpp"
#include "idem/testing/reference_store.hpp"

namespace idem::http {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class GuardTest : public ::testing::Test {
 protected:
  VirtualClock clock;
  std::shared_ptr<testing::ReferenceStore> store = std::make_shared<testing::ReferenceStore>(clock);

  std::unique_ptr<Guard> make_guard(ServiceOptions options = {}, Policy policy = {}) {
    options.clock = &clock;
    return std::make_unique<Guard>(std::make_shared<IdempotencyService>(store, options),
                                   std::move(policy));
  }

  static RequestView request(std::span<const HeaderView> headers, std::string_view body = "{}") {
    RequestView view;
    view.method = "POST";
    view.target = "/pay";
    view.headers = headers;
    view.body = body;
    return view;
  }
  static Decision begin(Guard& guard, std::string_view key, std::string_view body = "{}") {
    const HeaderView header{"Idempotency-Key", key};
    return guard.begin(request({&header, 1}, body));
  }
  // Begins and finishes with `response`; expects to be let run.
  static Finished handle(Guard& guard, std::string_view key, const ResponseView& response) {
    Decision decision = begin(guard, key);
    return guard.finish(std::move(std::get<Proceed>(decision).exchange), response);
  }
  static Response answer(Decision decision) {
    return std::get<Answer>(std::move(decision)).response;
  }
  static std::string header(const Response& response, std::string_view name) {
    for (const Header& one : response.headers) {
      if (same_header(one.name, name)) return one.value;
    }
    return "(none)";
  }
};

// What an attempt did before is not undone by one that did nothing.
TEST_F(GuardTest, AReleaseForgetsNoAttemptBeforeIt) {
  const auto guard = make_guard();
  Decision first = begin(*guard, "k");
  guard->fail(std::move(std::get<Proceed>(first).exchange), "it acted, and broke");
  Decision second = begin(*guard, "k");
  EXPECT_EQ(std::get<Proceed>(second).exchange.attempt(), 2U);
  guard->release(std::move(std::get<Proceed>(second).exchange));
  EXPECT_EQ(answer(begin(*guard, "k", "another")).status, 422U);
  Decision third = begin(*guard, "k");
  EXPECT_EQ(std::get<Proceed>(third).exchange.attempt(), 3U);

  Decision only = begin(*guard, "once");
  guard->release(std::move(std::get<Proceed>(only).exchange));
  EXPECT_TRUE(std::holds_alternative<Proceed>(begin(*guard, "once", "another")));
}

TEST_F(GuardTest, TheFirstRunsAndTheSecondReplays) {
  const auto guard = make_guard();
  const std::vector<HeaderView> headers{{"Content-Type", "application/json"},
                                        {"Set-Cookie", "s=1"}};
  const Finished first = handle(*guard, "k1", {201, headers, "{\"id\":1}"});
  EXPECT_FALSE(first.instead);
  EXPECT_EQ(first.add, (std::vector<Header>{{"Idempotency-Key-TTL", "86400"}}));
  const Response replay = answer(begin(*guard, "\"k1\""));
  EXPECT_EQ(replay.status, 201U);
  EXPECT_EQ(replay.body, "{\"id\":1}");
  EXPECT_EQ(replay.headers, (std::vector<Header>{{"Content-Type", "application/json"},
                                                 {"Idempotent-Replayed", "true"},
                                                 {"Idempotency-Key-TTL", "86400"}}));
}

TEST_F(GuardTest, BadKeysAre400WithALink) {
  const auto guard = make_guard();
  const auto code_of = [&](std::span<const HeaderView> headers) {
    const Response response = answer(guard->begin(request(headers)));
    EXPECT_EQ(response.status, 400U);
    EXPECT_EQ(header(response, "Content-Type"), "application/problem+json");
    EXPECT_THAT(header(response, "Link"), HasSubstr(">; rel=\"describedby\""));
    const std::size_t at = response.body.find("\"code\":\"") + 8;
    return response.body.substr(at, response.body.find('"', at) - at);
  };
  EXPECT_EQ(code_of({}), "key_missing");
  const std::vector<HeaderView> blank{{"idempotency-KEY", "  "}};
  EXPECT_EQ(code_of(blank), "key_malformed");
  const std::vector<HeaderView> twice{{"Idempotency-Key", "a"}, {"idempotency-key", "a"}};
  EXPECT_EQ(code_of(twice), "key_malformed");
  const std::string long_key(129, 'x');
  const std::vector<HeaderView> too_long{{"Idempotency-Key", long_key}};
  EXPECT_EQ(code_of(too_long), "key_too_long");
  EXPECT_EQ(store->stats()->records(), 0U);
}

TEST_F(GuardTest, AKeyMayBeOptionalOrOff) {
  const auto guard = make_guard({}, [] {
    Policy policy;
    policy.key = KeyUse::optional;
    return policy;
  }());
  EXPECT_TRUE(std::holds_alternative<Pass>(guard->begin(request({}))));
  const std::vector<HeaderView> twice{{"Idempotency-Key", "a"}, {"Idempotency-Key", "b"}};
  EXPECT_EQ(answer(guard->begin(request(twice))).status, 400U);
  RequestView off = request(twice);
  off.key = KeyUse::off;
  EXPECT_TRUE(std::holds_alternative<Pass>(guard->begin(off)));
}

TEST_F(GuardTest, AnotherRequestWithTheKeyIs422) {
  const auto guard = make_guard();
  handle(*guard, "k1", {201, {}, "secret"});
  const Response response = answer(begin(*guard, "k1", "{\"amount\":2}"));
  EXPECT_EQ(response.status, 422U);
  EXPECT_THAT(response.body, HasSubstr("\"code\":\"key_reused\""));
  EXPECT_THAT(response.body, ::testing::Not(HasSubstr("secret")));
}

TEST_F(GuardTest, ARunningFirstRequestIs409WithRetryAfter) {
  ServiceOptions options;
  options.policy.lease = 2500ms;
  const auto guard = make_guard(options);
  const Decision first = begin(*guard, "k1");
  ASSERT_TRUE(std::holds_alternative<Proceed>(first));
  Response response = answer(begin(*guard, "k1"));
  EXPECT_EQ(response.status, 409U);
  EXPECT_EQ(header(response, "Retry-After"), "3");
  EXPECT_THAT(response.body, HasSubstr("\"code\":\"in_progress\""));
}

// The handler may take many times the lease; nobody may take over while it runs.
TEST_F(GuardTest, ALongHandlerKeepsItsClaim) {
  const auto guard = make_guard();
  Decision first = begin(*guard, "k1");
  for (int i = 0; i < 100; ++i) {
    clock.advance(10s);
    ASSERT_EQ(answer(begin(*guard, "k1")).status, 409U);
  }
  const Finished done =
      guard->finish(std::move(std::get<Proceed>(first).exchange), {200, {}, "done"});
  EXPECT_FALSE(done.instead);
  EXPECT_EQ(answer(begin(*guard, "k1")).body, "done");
}

// A connection that broke, a handler that was forgotten: the claim lapses with its lease.
TEST_F(GuardTest, ADroppedExchangeLeavesNothingPastItsLease) {
  const auto guard = make_guard();
  { const Decision first = begin(*guard, "k1"); }
  EXPECT_EQ(answer(begin(*guard, "k1")).status, 409U);
  clock.advance(30s);
  Decision second = begin(*guard, "k1");
  ASSERT_TRUE(std::holds_alternative<Proceed>(second));
  EXPECT_EQ(std::get<Proceed>(second).exchange.kind(), ClaimKind::takeover);
}

class RetryableStatus : public GuardTest, public ::testing::WithParamInterface<unsigned> {};

TEST_P(RetryableStatus, IsNotKeptForReplay) {
  const auto guard = make_guard();
  EXPECT_FALSE(handle(*guard, "k1", {GetParam(), {}, "try again"}).instead);
  Decision second = begin(*guard, "k1");
  ASSERT_TRUE(std::holds_alternative<Proceed>(second));
  EXPECT_EQ(std::get<Proceed>(second).exchange.kind(), ClaimKind::retry);
  EXPECT_EQ(std::get<Proceed>(second).exchange.attempt(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Statuses, RetryableStatus,
                         ::testing::Values(408, 425, 429, 500, 503, 599));

TEST_F(GuardTest, AClientErrorIsAResult) {
  const auto guard = make_guard();
  handle(*guard, "k1", {404, {}, "no such order"});
  const Response replay = answer(begin(*guard, "k1"));
  EXPECT_EQ(replay.status, 404U);
  EXPECT_EQ(replay.body, "no such order");
}

// At the last attempt the failure itself is what duplicates get.
TEST_F(GuardTest, AFailureForGoodIsReplayedWithItsStatus) {
  ServiceOptions options;
  options.policy.max_attempts = 1;
  const auto guard = make_guard(options);
  const std::vector<HeaderView> headers{{"Content-Type", "text/plain"}};
  handle(*guard, "k1", {503, headers, "no stock"});
  const Response replay = answer(begin(*guard, "k1"));
  EXPECT_EQ(replay.status, 503U);
  EXPECT_EQ(replay.body, "no stock");
  EXPECT_EQ(header(replay, "Idempotent-Replayed"), "true");
  // A body over the limit of a reason is left out, the status stays.
  handle(*guard, "k2", {500, {}, std::string(10000, 'x')});
  EXPECT_EQ(answer(begin(*guard, "k2")).status, 500U);
}

TEST_F(GuardTest, AReasonThatIsNoResponseIsNotShown) {
  const auto guard = make_guard();
  Decision first = begin(*guard, "k1");
  const auto fence = std::get<Proceed>(first).exchange.fence();
  ASSERT_TRUE(guard->service().force_fail({{}, {}, "k1"}, fence, "internal: db password wrong"));
  const Response response = answer(begin(*guard, "k1"));
  EXPECT_EQ(response.status, 409U);
  EXPECT_THAT(response.body, HasSubstr("\"code\":\"failed\""));
  EXPECT_THAT(response.body, ::testing::Not(HasSubstr("password")));
  // The handler that was overruled must not report a success of its own.
  EXPECT_TRUE(
      guard->finish(std::move(std::get<Proceed>(first).exchange), {200, {}, "late"}).instead);
}

TEST_F(GuardTest, InDoubtAndExhaustedAre409) {
  ServiceOptions options;
  options.policy.on_lapsed = OnLapsed::hold;
  auto guard = make_guard(options);
  { const Decision first = begin(*guard, "k1"); }
  clock.advance(31s);
  EXPECT_THAT(answer(begin(*guard, "k1")).body, HasSubstr("\"code\":\"in_doubt\""));
  // What a person found out is given to the next duplicate.
  const auto found = guard->service().get({{}, {}, "k1"});
  ASSERT_TRUE(found && *found);
  ASSERT_TRUE(
      guard->service().resolve({{}, {}, "k1"}, (*found)->record.fence, ResolveSuccess{"paid"}));
  EXPECT_EQ(answer(begin(*guard, "k1")).body, "paid");

  options.policy.on_lapsed = OnLapsed::takeover;
  options.policy.max_attempts = 1;
  guard = make_guard(options);
  { const Decision first = begin(*guard, "k2"); }
  clock.advance(31s);
  EXPECT_THAT(answer(begin(*guard, "k2")).body, HasSubstr("\"code\":\"attempts_exhausted\""));
}

// What a proxy claimed under hold, renewed and gave up stays in doubt whatever the sweep does.
TEST_F(GuardTest, HoldOutlivesRenewalsAndTheSweep) {
  const auto guard = make_guard();
  const Request asked{"k1", Fingerprint::of_bytes("a")};
  CallOptions holding;
  holding.policy.on_lapsed = OnLapsed::hold;
  Decision first = guard->claim(asked, holding);
  clock.advance(100s);
  guard->hold(std::move(std::get<Proceed>(first).exchange));
  clock.advance(2000s);
  EXPECT_EQ(guard->service().sweep()->abandoned, 0U);
  EXPECT_THAT(answer(guard->claim(asked, holding)).body, HasSubstr("\"code\":\"in_doubt\""));
}

TEST_F(GuardTest, AlreadyDoneWithoutTheResultIs204) {
  ServiceOptions options;
  options.policy.return_original_result = false;
  const auto guard = make_guard(options);
  handle(*guard, "k1", {201, {}, "secret"});
  const Response response = answer(begin(*guard, "k1"));
  EXPECT_EQ(response.status, 204U);
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(header(response, "Idempotent-Replayed"), "true");
}

// A worker that was too slow: its client gets what the others got.
TEST_F(GuardTest, WhoWasTakenOverAnswersWithTheWinnersResponse) {
  const auto guard = make_guard();
  Decision slow = begin(*guard, "k1");
  guard->hold(Exchange(std::move(std::get<Proceed>(slow).exchange)));  // no renewals any more
  Decision stalled = begin(*guard, "k2");
  const auto fence = std::get<Proceed>(stalled).exchange.fence();
  ASSERT_TRUE(guard->service().force_release({{}, {}, "k2"}, fence));
  handle(*guard, "k2", {201, {}, "winner"});
  const Finished late =
      guard->finish(std::move(std::get<Proceed>(stalled).exchange), {201, {}, "late"});
  ASSERT_TRUE(late.instead);
  EXPECT_EQ(late.instead->body, "winner");
  EXPECT_EQ(header(*late.instead, "Idempotent-Replayed"), "true");
}

TEST_F(GuardTest, AResultThatIsTooLargeKeepsItsStatus) {
  ServiceOptions options;
  options.policy.max_result_bytes = 200;
  const auto guard = make_guard(options);
  EXPECT_FALSE(handle(*guard, "k1", {201, {}, std::string(1000, 'x')}).instead);
  const Response replay = answer(begin(*guard, "k1"));
  EXPECT_EQ(replay.status, 201U);
  EXPECT_THAT(replay.body, HasSubstr("\"code\":\"body_not_kept\""));
}

TEST_F(GuardTest, HoweverSmallTheLimitTheStatusIsKept) {
  ServiceOptions options;
  options.policy.max_result_bytes = 1;
  const auto guard = make_guard(options);
  const std::vector<HeaderView> headers{{"ETag", "1"}};
  EXPECT_FALSE(handle(*guard, "k1", {201, headers, "x"}).instead);
  EXPECT_EQ(answer(begin(*guard, "k1")).status, 201U);
}

TEST_F(GuardTest, TenantsAndScopesNeverMeet) {
  const auto guard = make_guard();
  const HeaderView header{"Idempotency-Key", "k1"};
  for (const auto& [tenant, biz_type] : std::vector<std::pair<std::string, std::string>>{
           {"", ""}, {"alice", ""}, {"bob", ""}, {"", "pay"}, {"alice", "pay"}}) {
    RequestView view = request({&header, 1}, tenant);
    view.tenant = tenant;
    view.biz_type = biz_type;
    Decision decision = guard->begin(view);
    ASSERT_TRUE(std::holds_alternative<Proceed>(decision)) << tenant << "/" << biz_type;
    EXPECT_FALSE(
        guard->finish(std::move(std::get<Proceed>(decision).exchange), {200, {}, tenant}).instead);
  }
  RequestView bad = request({&header, 1});
  const std::string long_tenant(65, 't');
  bad.tenant = long_tenant;
  EXPECT_EQ(answer(guard->begin(bad)).status, 500U);
}

TEST_F(GuardTest, AStoreThatIsAwayIs503) {
  const auto guard = make_guard();
  guard->service().shutdown(0s);
  const Response response = answer(begin(*guard, "k1"));
  EXPECT_EQ(response.status, 503U);
  EXPECT_EQ(header(response, "Retry-After"), "1");
  EXPECT_THAT(response.body, HasSubstr("\"code\":\"store_unavailable\""));
}

// A guard inside a transaction: what the store could not do must undo the business, too.
TEST_F(GuardTest, OrTheErrorOfAStoreIsThrown) {
  const auto faults = std::make_shared<testing::FaultStore>(store, clock);
  ServiceOptions options;
  options.clock = &clock;
  Guard guard(std::make_shared<IdempotencyService>(faults, options), {}, StoreErrors::thrown);
  const auto code_of = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Exception& error) {
      return error.code();
    }
    return errc::internal;
  };
  faults->on_call(testing::Verb::insert, 1, testing::Fault::busy);
  EXPECT_EQ(code_of([&] { (void)begin(guard, "k1"); }), errc::busy);
  for (const unsigned status : {201U, 503U}) {
    Decision first = begin(guard, "k1");
    faults->on_call(testing::Verb::replace, 1, testing::Fault::busy);
    Exchange& exchange = std::get<Proceed>(first).exchange;
    EXPECT_EQ(code_of([&] {
                (void)guard.finish(std::move(exchange), {status, {}, ""});
              }),
              errc::busy);
    clock.advance(30s);  // nobody was told, so the lease ends by itself
  }
}

// A guard whose store goes wrong between a handler's end and the report of it.
class UnreportedTest : public GuardTest, public ::testing::WithParamInterface<testing::Fault> {
 protected:
  std::shared_ptr<testing::FaultStore> faults = std::make_shared<testing::FaultStore>(store, clock);
  std::unique_ptr<Guard> guard = guard_before_faults();

  std::unique_ptr<Guard> guard_before_faults() {
    ServiceOptions options;
    options.clock = &clock;
    return std::make_unique<Guard>(std::make_shared<IdempotencyService>(faults, options));
  }
  // The client gets its response, the store does not.
  void finish_unheard(std::string_view key, testing::Fault fault) {
    Decision first = begin(*guard, key);
    faults->on_every_call(testing::Verb::replace, fault);
    const Finished finished =
        guard->finish(std::move(std::get<Proceed>(first).exchange), {201, {}, "first"});
    EXPECT_FALSE(finished.instead);
  }
  void expect_replay(std::string_view key) {
    const Response replay = answer(begin(*guard, key));
    EXPECT_EQ(replay.status, 201U);
    EXPECT_EQ(replay.body, "first");
    EXPECT_EQ(header(replay, "Idempotent-Replayed"), "true");
  }
};

TEST_P(UnreportedTest, AResultIsReportedAgainUntilTheStoreAnswers) {
  finish_unheard("k1", GetParam());
  EXPECT_EQ(guard->unreported(), 1U);
  clock.advance(20s);  // the store is still away; the lease is not over
  EXPECT_EQ(guard->unreported(), 1U);
  faults->calm();
  clock.advance(6s);
  EXPECT_EQ(guard->unreported(), 0U);
  clock.advance(1000s);
  expect_replay("k1");
}

TEST_P(UnreportedTest, TheEndOfTheGuardReportsOnceMore) {
  finish_unheard("k1", GetParam());
  faults->calm();
  guard = guard_before_faults();
  clock.advance(1000s);
  expect_replay("k1");
}

INSTANTIATE_TEST_SUITE_P(Faults, UnreportedTest,
                         ::testing::Values(testing::Fault::refuse, testing::Fault::busy,
                                           testing::Fault::full, testing::Fault::lose_request,
                                           testing::Fault::lose_reply, testing::Fault::apply_late));

TEST_F(UnreportedTest, AnAttemptThatTookOverKeepsItsResult) {
  finish_unheard("k1", testing::Fault::refuse);
  const auto other = make_guard();  // another process, whose way to the store is fine
  clock.advance(1000s);
  handle(*other, "k1", {201, {}, "second"});
  faults->calm();
  clock.advance(6s);
  EXPECT_EQ(guard->unreported(), 0U);
  EXPECT_EQ(answer(begin(*guard, "k1")).body, "second");
}

TEST_F(UnreportedTest, AfterTenMinutesItIsGivenUp) {
  finish_unheard("k1", testing::Fault::refuse);
  clock.advance(599s);
  EXPECT_EQ(guard->unreported(), 1U);
  clock.advance(7s);
  EXPECT_EQ(guard->unreported(), 0U);
}

TEST_F(UnreportedTest, SoManyAreKeptAndNoMore) {
  for (int i = 0; i < 1030; ++i) {
    faults->calm();
    finish_unheard("k" + std::to_string(i), testing::Fault::refuse);
  }
  EXPECT_EQ(guard->unreported(), 1024U);
  faults->calm();
  clock.advance(6s);
  EXPECT_EQ(guard->unreported(), 0U);
  EXPECT_EQ(store->stats()->success, 1024U);
}

TEST_F(GuardTest, ADamagedResponseIsNeverSent) {
  const auto guard = make_guard();
  Decision first = begin(*guard, "k1");
  const auto fence = std::get<Proceed>(first).exchange.fence();
  ASSERT_TRUE(guard->service().resolve(
      {{}, {}, "k1"}, fence, ResolveSuccess{"idem-http/1 200 0 kept\nSet-Cookie: a=b\n\n"}));
  const Response response = answer(begin(*guard, "k1"));
  EXPECT_EQ(response.status, 500U);
  EXPECT_THAT(response.body, HasSubstr("\"code\":\"result_corrupt\""));
  EXPECT_EQ(header(response, "Set-Cookie"), "(none)");
}

}  // namespace
}  // namespace idem::http
