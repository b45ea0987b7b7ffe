// ModelCheck: random calls, the same to a service over the store and to a plain model.
//
// A difference prints the seed and the last calls. IDEM_MODEL_SEED=N runs that seed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <random>

#include "idem/conformance/suites.hpp"
#include "idem/testing/describe.hpp"
#include "model.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;

constexpr int kSteps = 1500;
constexpr std::size_t kTraceMax = 25;

// A claim that was given, whoever has been given the key since.
struct Holder {
  Lease lease;
  bool hold;
};

class Walk {
 public:
  Walk(std::uint64_t seed, bool exact, IdempotencyService& service,
       std::function<void(Duration)> advance, std::function<Time()> now)
      : random_(seed),
        exact_(exact),
        service_(service),
        advance_(std::move(advance)),
        now_(std::move(now)),
        prefix_("seed" + std::to_string(seed) + "-") {}

  // nullopt: all steps agreed. Else the difference and how it came about.
  std::optional<std::string> run() {
    for (int step = 0; step < kSteps && !difference_; ++step) one_step();
    return difference_;
  }

  [[nodiscard]] const std::map<std::string, int>& mix() const { return mix_; }

 private:
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  std::string any_key() { return prefix_ + std::to_string(below(4)); }

  void one_step() {
    const std::size_t dice = below(100);
    if (dice < 34) return claim(any_key());
    if (dice < 38) return claim_many();
    if (dice < 52) return complete();
    if (dice < 60) return fail();
    if (dice < 66) return renew();
    if (dice < 71) return release();
    if (dice < 73) return force_release();
    if (dice < 79) return get(any_key());
    if (dice < 83) return sweep();
    advance();
  }

  void compare(const std::string& call, std::string model, std::string store) {
    if (!exact_) {
      model = without_details(std::move(model));
      store = without_details(std::move(store));
    }
    trace_.push_back(call + " -> " + store);
    if (trace_.size() > kTraceMax) trace_.pop_front();
    ++mix_[model.substr(0, model.find_first_of(",(\""))];
    if (model == store) return;
    difference_ = "the model says: " + model + "\nthe store says: " + store + "\nlast calls:";
    for (const std::string& entry : trace_) *difference_ += "\n  " + entry;
  }

  // A repeated call cannot know whether its first try was the one that counted.
  static std::string without_details(std::string text) {
    for (const char* detail :
         {" fresh", " retry", " takeover", " resumed", ", late", ", already"}) {
      const std::size_t at = text.find(detail);
      if (at != std::string::npos) text.erase(at, std::string_view(detail).size());
    }
    return text;
  }

  void claim(const std::string& key) {
    const auto rule = static_cast<Rule>(below(4) == 0 ? below(4) : 0);
    const std::string body = below(10) == 0 ? "another" : "body";
    CallOptions options;
    options.policy = patch_of(rule);
    auto& holders = holders_[key];
    options.owner = !holders.empty() && below(5) == 0
                        ? holders[below(holders.size())].lease.token().owner
                        : Owner::random();
    const auto expected = model_.claim(key, body, *options.owner, rule, now_());
    auto answer = service_.claim({Key(key), Fingerprint::of_bytes(body)}, options);
    compare("claim " + key + " " + body + " rule " + std::to_string(static_cast<int>(rule)),
            expected.text, line(answer));
    if (!difference_) keep(key, expected.new_fence, rule == Rule::hold, answer);
  }

  void keep(const std::string& key, bool new_fence, bool hold, result<ClaimOutcome>& answer) {
    auto* given = std::get_if<Claimed>(&*answer);
    if (given == nullptr) return;
    std::uint64_t& last = last_fence_[key];
    const std::uint64_t fence = given->lease.fence();
    if (new_fence ? fence <= last : fence != last) {
      compare("fence of " + key, new_fence ? "a fence over " + std::to_string(last) : "the same",
              std::to_string(fence));
    }
    last = fence;
    model_.learn_fence(key, fence);
    auto& holders = holders_[key];
    holders.push_back({std::move(given->lease), hold});
    if (holders.size() > 5) holders.erase(holders.begin());
  }

  // Distinct keys: equal ones in a batch are another case.
  void claim_many() {
    std::vector<Request> requests;
    std::vector<Model::ClaimAnswer> expected;
    const std::size_t first = below(4);
    CallOptions options;  // each item has an owner of its own, which the model learns afterwards
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string key = prefix_ + std::to_string((first + i) % 4);
      requests.push_back({Key(key), Fingerprint::of_bytes("body")});
      expected.push_back(model_.claim(key, "body", Owner{}, Rule::normal, now_()));
    }
    auto answers = service_.claim_many(requests, options);
    for (std::size_t i = 0; i < 3 && !difference_; ++i) {
      const std::string& key = requests[i].key.key;
      compare("claim_many " + key, expected[i].text, line(answers[i]));
      if (difference_) return;
      if (const auto* given = std::get_if<Claimed>(&*answers[i])) {
        model_.learn_owner(key, given->lease.token().owner);
      }
      keep(key, expected[i].new_fence, false, answers[i]);
    }
  }

  // Someone who holds, or held, a claim of some key; as the lease or as another process would.
  Holder* any_holder(std::string& key) {
    key = any_key();
    auto& holders = holders_[key];
    return holders.empty() ? nullptr : &holders[below(holders.size())];
  }
  Lease& report_by(Holder& holder, std::optional<Lease>& adopted) {
    if (holder.hold || below(4) != 0) return holder.lease;
    return adopted.emplace(Lease::adopt(holder.lease.request(), holder.lease.token()));
  }

  void complete() {
    std::string key;
    Holder* const holder = any_holder(key);
    if (holder == nullptr) return;
    const std::string result = below(3) == 0 ? "R2" : "R1";
    std::optional<Lease> adopted;
    Lease& lease = report_by(*holder, adopted);
    const std::string expected = model_.complete(key, lease.token(), result, now_());
    compare("complete " + key + " " + result, expected,
            testing::describe(service_.complete(lease, result)));
  }

  void fail() {
    std::string key;
    Holder* const holder = any_holder(key);
    if (holder == nullptr) return;
    const FailKind kind = below(3) == 0 ? FailKind::final : FailKind::retryable;
    const Micros after = kind == FailKind::final ? Micros(0) : Micros(below(3) * 20s);
    std::optional<Lease> adopted;
    Lease& lease = report_by(*holder, adopted);
    const std::string expected = model_.fail(key, lease.token(), kind, after, now_());
    compare("fail " + key, expected, testing::describe(service_.fail(lease, kind, "why", after)));
  }

  void renew() {
    std::string key;
    Holder* const holder = any_holder(key);
    if (holder == nullptr) return;
    CallOptions options;
    options.policy.lease = std::chrono::seconds(1 + below(100));
    std::optional<Lease> adopted;
    Lease& lease = report_by(*holder, adopted);
    const std::string expected =
        model_.renew(key, lease.token(), options.policy.lease->micros(), holder->hold, now_());
    compare("renew " + key, expected, testing::describe(service_.renew(lease, options)));
  }

  void release() {
    std::string key;
    Holder* const holder = any_holder(key);
    if (holder == nullptr) return;
    std::optional<Lease> adopted;
    Lease& lease = report_by(*holder, adopted);
    const std::string expected = model_.release(key, lease.token(), now_());
    compare("release " + key, expected, testing::describe(service_.release(lease)));
  }

  void force_release() {
    std::string key;
    Holder* const holder = any_holder(key);
    if (holder == nullptr || !exact_) return;  // a repeated one finds its fence stale
    const std::uint64_t fence = holder->lease.fence();
    const std::string expected = model_.force_release(key, fence, now_());
    const auto answer = service_.force_release(Key(key), fence);
    compare("force_release " + key, expected,
            answer.has_error() ? std::string(to_string(answer.error().code)) : "done");
  }

  void get(const std::string& key) {
    const std::string expected = model_.get(key, now_());
    const auto found = service_.get(Key(key));
    std::string text = found.has_error() ? testing::describe(found.error()) : "absent";
    if (found.has_value() && found->has_value()) {
      const Record& record = (*found)->record;
      text = std::string(to_string(record.status)) + " " +
             std::string(to_string(record.fail_kind)) + ", attempt " +
             std::to_string(record.attempt) + ", " + testing::quote(record.result);
    }
    compare("get " + key, expected, text);
  }

  void sweep() {
    std::string expected = model_.sweep(now_());
    std::string text = testing::describe(service_.sweep(1000));
    if (service_.store().capabilities().frees_by_itself) {
      expected.erase(expected.find(','));
      text.erase(text.find(','));
    }
    // A lost reply of an abandonment is not counted; what it did shows in later answers.
    compare("sweep", exact_ ? expected : "swept", exact_ ? text : "swept");
  }

  void advance() {
    static constexpr Micros kJumps[] = {1ms, 5s,   29'999ms, 30s, 30s,
                                        31s, 100s, 600s,     24h, 24h + 30s};
    const Micros jump = kJumps[below(std::size(kJumps))];
    advance_(jump);
    trace_.push_back("advance " + testing::length(jump));
  }

  std::mt19937_64 random_;
  bool exact_;
  IdempotencyService& service_;
  std::function<void(Duration)> advance_;
  std::function<Time()> now_;
  std::string prefix_;
  Model model_;
  std::map<std::string, std::vector<Holder>> holders_;
  std::map<std::string, std::uint64_t> last_fence_;
  std::deque<std::string> trace_;
  std::map<std::string, int> mix_;
  std::optional<std::string> difference_;
};

TEST_P(ModelCheck, RandomCallsAnswerAsTheModelDoes) {
  const char* const given = std::getenv("IDEM_MODEL_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20240101;
  Walk walk(
      seed, exact(), service(), [&](Duration d) { advance(d); },
      [&] { return store_clock().now(); });
  const auto difference = walk.run();
  EXPECT_FALSE(difference.has_value()) << "seed " << seed << ": " << *difference;
  // A walk that never meets the rare outcomes proves nothing about them.
  if (!difference && given == nullptr) {
    for (const char* outcome : {"mismatch", "replay of ", "lost", "gone", "in progress "}) {
      EXPECT_GT(walk.mix().count(outcome), 0u) << outcome << " never came up";
    }
  }
}

}  // namespace
}  // namespace idem::conformance
