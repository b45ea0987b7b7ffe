#include "idem/conformance/suites.hpp"

#include <stdexcept>

#include "idem/testing/describe.hpp"

namespace idem::conformance {
namespace {

Fixture made(const Subject& subject, Clock& clock) {
  auto fixture = subject.make(clock);
  if (fixture.has_error()) {
    throw std::runtime_error("no store " + subject.name + ": " +
                             testing::describe(fixture.error()));
  }
  return std::move(*fixture);
}

}  // namespace

StoreCase::StoreCase() : fixture_(made(GetParam(), store_clock_)) {}

void StoreCase::expect_count(std::uint64_t actual, std::uint64_t expected) {
  if (frees_by_itself()) {
    EXPECT_LE(actual, expected);
  } else {
    EXPECT_EQ(actual, expected);
  }
}

Answer StoreContract::insert(KeyRef key, const Draft& draft) {
  Insert op{key, draft, {}};
  store().insert({&op, 1});
  return op.answer;
}

Answer StoreContract::replace(KeyRef key, std::uint64_t expected, const Draft& draft) {
  Replace op{key, expected, draft, {}};
  store().replace({&op, 1});
  return op.answer;
}

Answer StoreContract::load(KeyRef key) {
  Load op{key, {}};
  store().load({&op, 1});
  return op.answer;
}

Answer StoreContract::remove(KeyRef key, std::uint64_t expected) {
  Remove op{key, expected, {}};
  store().remove({&op, 1});
  return op.answer;
}

Record StoreContract::held(KeyRef key) {
  Answer answer = load(key);
  if (answer.state != Answer::State::stands) {
    throw std::runtime_error("no record " + testing::describe(Key(key)) + ": " +
                             testing::describe(answer));
  }
  return std::move(answer.held);
}

ServiceCase::ServiceCase() : caller_clock_(kVirtualStart + GetParam().caller_ahead) {
  service_ = service_with(Policy{});
}

ServiceCase::~ServiceCase() = default;

std::unique_ptr<IdempotencyService> ServiceCase::service_with(const Policy& policy) {
  ServiceOptions options;
  options.policy = policy;
  options.clock = &caller_clock_;
  return std::make_unique<IdempotencyService>(shared_store(), std::move(options));
}

void ServiceCase::advance(Duration d) {
  store_clock().advance(d);
  caller_clock_.advance(d);
}

Request ServiceCase::request(std::string_view key, std::string_view body) {
  return {Key(std::string(key)), Fingerprint::of_bytes(body)};
}

result<ClaimOutcome> ServiceCase::claim(std::string_view key, std::string_view body,
                                        const CallOptions& options) {
  return service().claim(request(key, body), options);
}

Lease ServiceCase::claimed(std::string_view key, std::string_view body,
                           const CallOptions& options) {
  auto outcome = claim(key, body, options);
  if (outcome.has_error() || !std::holds_alternative<Claimed>(*outcome)) {
    throw std::runtime_error("claim of " + std::string(key) + ": " + testing::describe(outcome));
  }
  return std::move(std::get<Claimed>(*outcome).lease);
}

Record ServiceCase::record(std::string_view key) {
  const Key whole{std::string(key)};
  auto found = service().get(whole);
  if (found.has_error() || !found->has_value()) {
    throw std::runtime_error("get of " + std::string(key) + ": " + testing::describe(found));
  }
  return std::move((*found)->record);
}

Concurrency::Concurrency() : fixture_(made(GetParam(), system_clock())) {}

}  // namespace idem::conformance
