#include "runner.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

namespace idem::cli {

namespace {

// The scenarios' policy: SCENARIOS say lease 600 s, result TTL 24 h, retry allowed.
ServiceOptions scenario_options(Clock& clock) {
  ServiceOptions options;
  options.policy.lease = std::chrono::seconds(600);
  options.clock = &clock;
  return options;
}

Key key_of(Line& line) {
  Key key{line.text("tenant"), line.text("biz"), ""};
  const Json* facts = line.member("facts");
  line.at_most_one_of({"facts", "key", "key_hex", "key_size"});
  if (facts == nullptr) {
    const auto named = line.bytes("key");
    if (!named) throw Failure::usage("no 'key'");
    key.key = *named;
    return key;
  }
  if (!facts->is_array() || facts->empty() || !facts->front().is_string())
    throw Failure::usage("'facts' must be an array that begins with the action");
  KeyBuilder builder(facts->front().get<std::string>());
  for (auto fact = facts->begin() + 1; fact != facts->end(); ++fact) {
    const bool too_large = fact->is_number_unsigned() && fact->get<std::uint64_t>() > INT64_MAX;
    if (fact->is_string()) {
      builder.add(fact->get<std::string>());
    } else if (fact->is_number_integer() && !too_large) {
      builder.add(fact->get<std::int64_t>());
    } else {
      throw Failure::usage("'facts' must be texts and whole numbers, not " + fact->dump());
    }
  }
  key.key = builder.key();
  return key;
}

result<Fingerprint> fingerprint_of(Line& line) {
  line.at_most_one_of({"hash", "request", "request_hex", "request_size"});
  line.at_most_one_of({"hash", "canonical"});
  const bool canonical = line.flag("canonical");
  if (line.has("hash")) return Fingerprint::from_hex(line.text("hash"));
  const std::string request = line.bytes("request").value_or("");
  return canonical ? Fingerprint::of_json(request) : Fingerprint::of_bytes(request);
}

CallOptions claim_options(Line& line) {
  CallOptions options;
  PolicyPatch& policy = options.policy;
  policy.lease = line.duration("lease");
  policy.stuck_after = line.duration("stuck_after");
  policy.result_ttl = line.duration("ttl");
  policy.failed_ttl = line.duration("failed_ttl");
  policy.max_total_lease = line.duration("max_total_lease");
  if (const auto attempts = line.number("max_attempts"))
    policy.max_attempts = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(*attempts, std::numeric_limits<std::uint32_t>::max()));
  if (const std::string word = line.text("on_lapsed"); !word.empty()) {
    if (word != "hold" && word != "takeover")
      throw Failure::usage("'on_lapsed' must be takeover or hold");
    policy.on_lapsed = word == "hold" ? OnLapsed::hold : OnLapsed::takeover;
  }
  if (line.has("retry_failed")) policy.retry_failed = line.flag("retry_failed");
  if (line.has("enabled")) policy.enabled = line.flag("enabled");
  if (line.has("return_original_result"))
    policy.return_original_result = line.flag("return_original_result");
  return options;
}

CallOptions complete_options(Line& line) {
  CallOptions options;
  options.policy.result_ttl = line.duration("ttl");
  options.policy.max_result_bytes = line.number("max_result_bytes");
  if (line.flag("tombstone")) options.policy.oversize = Oversize::tombstone;
  return options;
}

FailKind fail_kind_of(Line& line, std::string_view otherwise) {
  const std::string kind = line.text("kind", otherwise);
  if (kind == "retryable") return FailKind::retryable;
  if (kind == "final") return FailKind::final;
  throw Failure::usage("'kind' must be retryable or final");
}

template <class Outcome>
Json told(const result<Outcome>& outcome) {
  return outcome ? to_json(*outcome) : to_json(outcome.error());
}

Json named(std::string_view outcome) { return Json{{"outcome", outcome}}; }

// An administrator's answer.
Json done(const result<void>& outcome, std::string_view word) {
  return outcome ? named(word) : to_json(outcome.error());
}

Json key_to_json(const Key& key) {
  Json row{{"key", key.key}};
  if (!key.biz_type.empty()) row["biz"] = key.biz_type;
  if (!key.tenant.empty()) row["tenant"] = key.tenant;
  return row;
}

}  // namespace

ScriptRunner::ScriptRunner(StorePtr store, Clock& clock, const std::atomic<bool>& stop)
    : clock_(clock),
      stop_(stop),
      service_(store, scenario_options(clock)),
      sequence_(std::move(store)) {}

const std::map<std::string, ScriptRunner::Operation, std::less<>>& ScriptRunner::operations() {
  static const std::map<std::string, Operation, std::less<>> kOperations{
      {"claim", &ScriptRunner::claim},           {"complete", &ScriptRunner::complete},
      {"fail", &ScriptRunner::fail_attempt},     {"renew", &ScriptRunner::renew},
      {"release", &ScriptRunner::release},       {"get", &ScriptRunner::get},
      {"sweep", &ScriptRunner::sweep},           {"list", &ScriptRunner::list},
      {"stats", &ScriptRunner::stats},           {"force_release", &ScriptRunner::force_release},
      {"force_fail", &ScriptRunner::force_fail}, {"resolve", &ScriptRunner::resolve},
      {"claim_many", &ScriptRunner::claim_many}, {"complete_many", &ScriptRunner::complete_many},
      {"accept", &ScriptRunner::accept},         {"advance", &ScriptRunner::advance},
  };
  return kOperations;
}

Json ScriptRunner::answer(Line& line) {
  const std::string op = line.text("op");
  const auto found = operations().find(op);
  if (found == operations().end()) {
    std::set<std::string, std::less<>> names;
    for (const auto& [name, operation] : operations()) names.insert(name);
    std::string message = "unknown op '" + op + "'";
    if (const auto meant = nearest(op, names)) message += ", did you mean '" + *meant + "'?";
    throw Failure::usage(message);
  }
  return (this->*found->second)(line);
}

ScriptRunner::Attempted& ScriptRunner::attempted(Line& line, const Key& key) {
  const auto [at, fresh] = attempts_.try_emplace({line.text("as", "A"), key});
  if (fresh) at->second.owner = Owner::random();
  return at->second;
}

Lease& ScriptRunner::lease_of(Line& line) {
  const Key key = key_of(line);
  Attempted& known = attempted(line, key);
  if (!known.lease) known.lease = Lease::adopt({key, {}}, {known.owner, 0});
  return *known.lease;
}

std::uint64_t ScriptRunner::fence_of(Line& line) {
  const auto fence = line.number("fence");
  if (fence) return *fence;
  return lease_of(line).fence();  // of the caller's claim
}

Json ScriptRunner::claim(Line& line) {
  const Key key = key_of(line);
  const auto fingerprint = fingerprint_of(line);
  CallOptions options = claim_options(line);
  Attempted& known = attempted(line, key);
  if (line.flag("fresh_owner")) known.owner = Owner::random();
  options.owner = known.owner;
  if (!fingerprint) return to_json(fingerprint.error());
  auto outcome = service_.claim({key, *fingerprint}, options);
  Json answer = told(outcome);
  if (outcome) {
    if (auto* claimed = std::get_if<Claimed>(&*outcome)) known.lease = std::move(claimed->lease);
  }
  return answer;
}

Json ScriptRunner::complete(Line& line) {
  const CallOptions options = complete_options(line);
  const std::string result = line.bytes("result").value_or("");
  return told(service_.complete(lease_of(line), result, options));
}

Json ScriptRunner::fail_attempt(Line& line) {
  CallOptions options;
  options.policy.failed_ttl = line.duration("ttl");
  const FailKind kind = fail_kind_of(line, "retryable");
  const std::string reason = line.bytes("reason").value_or("");
  const Duration retry_after = line.duration("retry_after").value_or(Micros(0));
  return told(service_.fail(lease_of(line), kind, reason, retry_after, options));
}

Json ScriptRunner::renew(Line& line) {
  const CallOptions options = claim_options(line);
  return told(service_.renew(lease_of(line), options));
}

Json ScriptRunner::release(Line& line) { return told(service_.release(lease_of(line))); }

Json ScriptRunner::get(Line& line) {
  const auto found = service_.get(key_of(line));
  if (!found) return to_json(found.error());
  return *found ? record_to_json((*found)->record, (*found)->now) : named("absent");
}

Json ScriptRunner::sweep(Line& line) {
  const auto limit = line.number("limit");
  const auto swept = limit ? service_.sweep(static_cast<std::size_t>(*limit)) : service_.sweep();
  if (!swept) return to_json(swept.error());
  Json answer = named("swept");
  answer["abandoned"] = swept->abandoned;
  answer["expired"] = swept->expired;
  return answer;
}

Json ScriptRunner::list(Line& line) {
  ListQuery query;
  line.at_most_one_of({"status", "state"});
  const std::string status = line.text("status", line.text("state"));
  if (status == "processing") query.status = Status::processing;
  if (status == "success") query.status = Status::success;
  if (status == "failed") query.status = Status::failed;
  if (!status.empty() && !query.status)
    throw Failure::usage("'status' must be processing, success or failed");
  if (const auto lapsed = line.duration("lapsed_for")) query.lapsed_for = *lapsed;
  if (line.has("biz")) query.biz_type = line.text("biz");
  if (line.has("tenant")) query.tenant = line.text("tenant");
  if (const auto limit = line.number("limit")) query.limit = static_cast<std::size_t>(*limit);
  // All pages, by name: the order of a page is the store's own.
  std::map<Key, Json> rows;
  do {
    const auto page = service_.list(query);
    if (!page) return to_json(page.error());
    for (const Listed& item : page->items) {
      Json row = key_to_json(item.key);
      row["status"] = to_string(item.record.status);
      rows[item.key] = std::move(row);
    }
    query.cursor = page->cursor;
  } while (!query.cursor.empty());
  Json answer = named("listed");
  answer["count"] = rows.size();
  answer["items"] = Json::array();
  for (auto& [key, row] : rows) answer["items"].push_back(std::move(row));
  return answer;
}

Json ScriptRunner::stats(Line&) {
  const auto counted = service_.store().stats();
  if (!counted) return to_json(counted.error());
  Json answer = named("stats");
  answer["processing"] = counted->processing;
  answer["success"] = counted->success;
  answer["failed"] = counted->failed;
  answer["expired"] = counted->expired;
  return answer;
}

Json ScriptRunner::force_release(Line& line) {
  return done(service_.force_release(key_of(line), fence_of(line)), "released");
}

Json ScriptRunner::force_fail(Line& line) {
  const FailKind kind = fail_kind_of(line, "final");
  const std::string reason = line.bytes("reason").value_or("");
  return done(service_.force_fail(key_of(line), fence_of(line), reason, kind), "failed_recorded");
}

Json ScriptRunner::resolve(Line& line) {
  Resolution found;
  if (auto result = line.bytes("result")) {
    found = ResolveSuccess{std::move(*result)};
  } else {
    found = ResolveFailure{line.bytes("reason").value_or(""), fail_kind_of(line, "final")};
  }
  return done(service_.resolve(key_of(line), fence_of(line), found), "resolved");
}

namespace {

// The lines of "items", each with the line's own "as".
std::vector<Line> items_of(Line& line) {
  const Json* items = line.member("items");
  if (items == nullptr || !items->is_array()) throw Failure::usage("'items' must be an array");
  const std::string caller = line.text("as", "A");
  std::vector<Line> lines;
  for (const Json& item : *items) {
    if (!item.is_object())
      throw Failure::usage("each of 'items' must be an object, not " + item.dump(-1, ' ', true));
    Json whole = item;
    if (!whole.contains("as")) whole["as"] = caller;
    lines.emplace_back(std::move(whole));
  }
  return lines;
}

}  // namespace

Json ScriptRunner::claim_many(Line& line) {
  const CallOptions options = claim_options(line);
  std::vector<Line> items = items_of(line);
  std::vector<Request> requests;
  std::vector<Attempted*> callers;
  for (Line& item : items) {
    const Key key = key_of(item);
    requests.push_back({key, must(fingerprint_of(item))});
    callers.push_back(&attempted(item, key));
    item.check_all_known();
  }
  auto outcomes = service_.claim_many(requests, options);
  Json answer{{"items", Json::array()}};
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    answer["items"].push_back(told(outcomes[i]));
    if (!outcomes[i]) continue;
    if (auto* claimed = std::get_if<Claimed>(&*outcomes[i])) {
      callers[i]->owner = claimed->lease.token().owner;
      callers[i]->lease = std::move(claimed->lease);
    }
  }
  return answer;
}

Json ScriptRunner::complete_many(Line& line) {
  const CallOptions options = complete_options(line);
  std::vector<Line> lines = items_of(line);
  std::vector<std::string> results;
  results.reserve(lines.size());
  std::vector<IdempotencyService::CompleteItem> items;
  for (Line& item : lines) {
    results.push_back(item.bytes("result").value_or(""));
    items.push_back({&lease_of(item), results.back()});
    item.check_all_known();
  }
  Json answer{{"items", Json::array()}};
  for (const auto& outcome : service_.complete_many(items, options))
    answer["items"].push_back(told(outcome));
  return answer;
}

Json ScriptRunner::accept(Line& line) {
  const auto seq = line.number("seq");
  if (!seq) throw Failure::usage("no 'seq'");
  const auto outcome = sequence_.accept(line.text("stream"), *seq);
  if (!outcome) return to_json(outcome.error());
  if (std::holds_alternative<Applied>(*outcome)) return named("applied");
  if (std::holds_alternative<Duplicate>(*outcome)) return named("duplicate");
  const auto* stale = std::get_if<Stale>(&*outcome);
  Json answer = named(stale != nullptr ? "stale" : "gap");
  answer["newest"] = stale != nullptr ? stale->newest : std::get<Gap>(*outcome).newest;
  return answer;
}

Json ScriptRunner::advance(Line& line) {
  const auto by = line.duration("by");
  if (!by) throw Failure::usage("no 'by'");
  if (&clock_ != &system_clock()) {
    clock_.pause(*by);
    return named("advanced");
  }
  constexpr Micros kLook = std::chrono::milliseconds(50);  // between two looks at the stop
  const Time until = clock_.now() + by->micros();
  for (Micros left = by->micros(); left > Micros(0) && !stop_; left = until - clock_.now())
    clock_.pause(std::min(left, kLook));
  return named("advanced");
}

}  // namespace idem::cli
