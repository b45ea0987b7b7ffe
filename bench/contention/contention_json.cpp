#include "contention/contention.hpp"

namespace idem::bench {
namespace {

// For each, once: absent where there were none.
Json share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? Json(nullptr) : Json(static_cast<double>(part) / static_cast<double>(all));
}

const GridRow* bare_row(const Contention& c, const GridRow& row) {
  const std::string& against = c.contenders[row.contender].against;
  for (const GridRow& other : c.grid) {
    if (!against.empty() && c.contenders[other.contender].name == against &&
        other.keys == row.keys && other.clients == row.clients)
      return &other;
  }
  return nullptr;
}

// Winning and losing cost differently: rates over different mixtures of the two are not alike.
bool mixed_alike(const GridResult& a, const GridResult& b) {
  const double of_a = static_cast<double>(a.won) / static_cast<double>(a.answered());
  const double of_b = static_cast<double>(b.won) / static_cast<double>(b.answered());
  return of_a <= 2 * of_b && of_b <= 2 * of_a;
}

// The row's rate as a share of the bare protocol's in the same rounds; null where that says
// nothing.
Json ratio_to_bare(const Contention& c, const GridRow& row) {
  const GridRow* bare = bare_row(c, row);
  if (bare == nullptr || bare->rates.empty() || !bare->faults.empty() || row.rates.empty() ||
      !mixed_alike(row.total, bare->total))
    return nullptr;
  const double base = summarize(bare->rates).median;
  return base <= 0 ? Json(nullptr) : Json(summarize(row.rates).median / base);
}

Json to_json(const Costs& costs) {
  return Json{{"trips", costs.trips}, {"lock_waits", costs.lock_waits}, {"retries", costs.retries}};
}

template <class Result>
void add_server(Json& out, const Contender& contender, const Result& result) {
  if (!contender.count) return;
  out["deadlocks"] = result.server.deadlocks;
  out["ids_burnt"] = result.ids_burnt();
}

Json to_json(const Contention& c, const GridRow& row) {
  const GridResult& r = row.total;
  const Contender& contender = c.contenders[row.contender];
  Json out{{"contender", contender.name},
           {"keys", to_string(row.keys)},
           {"clients", row.clients},
           {"tier", to_string(contender.durability)}};
  if (row.rates.empty()) return out;
  const std::uint64_t asked = r.answered() + r.failed;
  out["void"] = !row.faults.empty();
  out["faults"] = row.faults;
  out["rate"] = to_json(summarize(row.rates), row.rates);
  out["ratio_to_bare"] = ratio_to_bare(c, row);
  out["claims"] =
      Json{{"won", r.won}, {"running", r.running}, {"done", r.done}, {"failed", r.failed}};
  out["won_share"] = share(r.won, asked);
  out["winner_ns"] = to_json(r.winner);
  out["loser_ns"] = to_json(r.loser);
  out["costs"] = to_json(r.costs);
  out["trips_per_claim"] = share(r.costs.trips, asked);
  out["lock_waits"] = r.lock_waits();
  add_server(out, contender, r);
  return out;
}

Json to_json(const Contention& c, const StormRow& row) {
  const StormResult& r = row.total;
  const Contender& contender = c.contenders[row.contender];
  Json out{{"contender", contender.name},
           {"clients", c.options.storm_clients},
           {"tier", to_string(contender.durability)}};
  if (r.storms == 0) return out;
  out["void"] = !row.faults.empty();
  out["faults"] = row.faults;
  out["storms"] = r.storms;
  out["duplicates_meet"] = to_string(manner_of(r.loser, c.options.work));
  out["loser_ns"] = to_json(r.loser);
  out["winner_claim_ns"] = to_json(r.winner_claim);
  out["winner_total_ns"] = to_json(r.winner_total);
  out["refusals"] = r.refusals;
  out["refusals_per_second"] = number(r.refusals_per_second());
  out["results_after_waiting"] = r.results;
  out["replays_checked"] = r.replays;
  out["trips_per_winner"] = number(r.trips_per_winner());
  out["trips_per_loser"] = number(r.trips_per_loser());
  out["winner_costs"] = to_json(r.winner_costs);
  out["loser_costs"] = to_json(r.loser_costs);
  out["lock_waits"] = r.lock_waits();
  add_server(out, contender, r);
  return out;
}

}  // namespace

Json to_json(const Contention& c) {
  const ContentionOptions& o = c.options;
  Json out;
  out["interrupted"] = c.interrupted;
  Json keys = Json::array();
  for (const KeyChoice& one : o.keys) keys.push_back(to_string(one));
  out["plan"] = Json{{"rounds", o.rounds},
                     {"round_time_us", o.round_time.count()},
                     {"clients", o.clients},
                     {"keys", keys},
                     {"claims_of_hot_key", kClaimsOfHotKey},
                     {"storm_clients", o.storm_clients},
                     {"storms_per_round", o.storms},
                     {"work_ns", o.work.count() * 1000},
                     {"seed", o.seed}};
  out["contenders"] = Json::array();
  for (const Contender& one : c.contenders) {
    out["contenders"].push_back(
        Json{{"contender", one.name},
             {"how", one.how},
             {"against", one.against.empty() ? Json(nullptr) : Json(one.against)},
             {"tier", to_string(one.durability)},
             {"skipped", one.skipped.empty() ? Json(nullptr) : Json(one.skipped)}});
  }
  out["storm"] = Json::array();
  for (const StormRow& row : c.storm) out["storm"].push_back(to_json(c, row));
  out["grid"] = Json::array();
  for (const GridRow& row : c.grid) out["grid"].push_back(to_json(c, row));
  return out;
}

}  // namespace idem::bench
