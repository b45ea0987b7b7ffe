// The settings of the state machine, under the names that the outside world gave them.
#include "idem/store_url.hpp"
#include "settings.hpp"
#include "values.hpp"

namespace idem::config {
namespace {

constexpr std::array<std::pair<std::string_view, OnLapsed>, 2> kOnLapsed{
    {{"takeover", OnLapsed::takeover}, {"hold", OnLapsed::hold}}};
constexpr std::array<std::pair<std::string_view, OnDuplicate>, 2> kOnDuplicate{
    {{"reject", OnDuplicate::reject}, {"wait", OnDuplicate::wait}}};
constexpr std::array<std::pair<std::string_view, Oversize>, 2> kOversize{
    {{"refuse", Oversize::refuse}, {"tombstone", Oversize::tombstone}}};

constexpr std::string_view kNone = "none";

// Setter and shower of a member: Patch is in PolicyPatch, Whole the same one in Policy.
template <auto Parse, auto Patch>
result<void> set(PolicyPatch& patch, const Value& value) {
  auto parsed = Parse(value);
  if (!parsed) return parsed.error();
  patch.*Patch = *parsed;
  return {};
}
template <auto Whole>
std::string show_bool(const Policy& policy) {
  return from_bool(policy.*Whole);
}
template <auto Whole>
std::string show_duration(const Policy& policy) {
  return format_duration(policy.*Whole);
}
template <const auto& Words, auto Patch>
result<void> set_word(PolicyPatch& patch, const Value& value) {
  auto parsed = to_word(value, Words);
  if (!parsed) return parsed.error();
  patch.*Patch = *parsed;
  return {};
}
template <const auto& Words, auto Whole>
std::string show_word(const Policy& policy) {
  return from_word(policy.*Whole, Words);
}

std::string show_seconds(const Policy& policy) {
  const Micros d = policy.stuck_after;
  // Where it was given with a finer unit, as "stuck_after".
  if (d % std::chrono::seconds(1) != Micros(0)) return format_duration(d);
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(d).count());
}
std::string show_attempts(const Policy& policy) {
  return policy.max_attempts ? std::to_string(*policy.max_attempts) : std::string(kNone);
}
std::string show_total_lease(const Policy& policy) {
  return policy.max_total_lease ? format_duration(*policy.max_total_lease) : std::string(kNone);
}
std::string show_result_bytes(const Policy& policy) { return from_bytes(policy.max_result_bytes); }

using P = PolicyPatch;
constexpr std::array kSettings{
    PolicySetting{{"enabled", "bool", "false: every request runs, nothing is stored", true},
                  "enabled",
                  set<to_bool, &P::enabled>,
                  show_bool<&Policy::enabled>},
    PolicySetting{
        {"redis_ttl", "duration", "the lease: how long a silent attempt keeps its claim", true},
        "lease",
        set<to_duration, &P::lease>,
        show_duration<&Policy::lease>},
    PolicySetting{{"lease", "duration", "another name of redis_ttl", true},
                  "lease",
                  set<to_duration, &P::lease>,
                  show_duration<&Policy::lease>},
    PolicySetting{{"db_timeout_clean_seconds", "seconds",
                   "stuck_after: when the sweep gives a silent attempt up", true},
                  "stuck_after",
                  set<to_seconds, &P::stuck_after>,
                  show_seconds},
    PolicySetting{{"stuck_after", "duration", "another name of db_timeout_clean_seconds", true},
                  "stuck_after",
                  set<to_duration, &P::stuck_after>,
                  show_duration<&Policy::stuck_after>},
    PolicySetting{{"return_original_result", "bool",
                   "false: a duplicate is told that it is one, without the first result", true},
                  "return_original_result",
                  set<to_bool, &P::return_original_result>,
                  show_bool<&Policy::return_original_result>},
    PolicySetting{{"result_ttl", "duration",
                   "how long a result is kept; longer than the sender's longest retry", true},
                  "result_ttl",
                  set<to_duration, &P::result_ttl>,
                  show_duration<&Policy::result_ttl>},
    PolicySetting{{"failed_ttl", "duration", "how long a failure is kept", true},
                  "failed_ttl",
                  set<to_duration, &P::failed_ttl>,
                  show_duration<&Policy::failed_ttl>},
    PolicySetting{{"on_lapsed", "takeover|hold",
                   "an attempt whose lease is over: run again, or wait for a person", true},
                  "on_lapsed",
                  set_word<kOnLapsed, &P::on_lapsed>,
                  show_word<kOnLapsed, &Policy::on_lapsed>},
    PolicySetting{{"retry_failed", "bool", "whether a failed request may run again", true},
                  "retry_failed",
                  set<to_bool, &P::retry_failed>,
                  show_bool<&Policy::retry_failed>},
    PolicySetting{{"max_attempts", "number", "attempts of one key; default none", true},
                  "max_attempts",
                  set<to_number, &P::max_attempts>,
                  show_attempts},
    PolicySetting{
        {"max_total_lease", "duration", "cap of all renewals of a claim; default none", true},
        "max_total_lease",
        set<to_duration, &P::max_total_lease>,
        show_total_lease},
    PolicySetting{
        {"on_duplicate", "reject|wait",
         "a duplicate of a running request: told so at once, or waits for the result", true},
        "on_duplicate",
        set_word<kOnDuplicate, &P::on_duplicate>,
        show_word<kOnDuplicate, &Policy::on_duplicate>},
    PolicySetting{{"wait", "duration", "how long such a duplicate waits", true},
                  "wait",
                  set<to_duration, &P::wait>,
                  show_duration<&Policy::wait>},
    PolicySetting{{"max_result_bytes", "count", "largest result that is kept", true},
                  "max_result_bytes",
                  set<to_count, &P::max_result_bytes>,
                  show_result_bytes},
    PolicySetting{{"oversize", "refuse|tombstone",
                   "a larger result: refused, or its size and digest kept", true},
                  "oversize",
                  set_word<kOversize, &P::oversize>,
                  show_word<kOversize, &Policy::oversize>},
};

}  // namespace

std::span<const PolicySetting> policy_settings() { return kSettings; }

}  // namespace idem::config
