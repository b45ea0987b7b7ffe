#include "load/report.hpp"

#include "load/json.hpp"
#include "load/slo.hpp"

namespace idem::bench {
namespace {

Json to_json(const Latencies& latencies) {
  Json out = Json::object();
  for (std::size_t i = 0; i < kRoles; ++i)
    out[std::string(to_string(static_cast<Role>(i)))] = to_json(latencies[i]);
  return out;
}

Json to_json(const Checks& checks) {
  return Json{{"hold", checks.hold()},
              {"keys", checks.keys},
              {"executed_once", checks.once},
              {"executed_twice", checks.executed_twice},
              {"never_executed", checks.never_executed},
              {"replays", checks.replays},
              {"wrong_replays", checks.wrong_replays},
              {"lost_records", checks.lost_records},
              {"left_processing", checks.left_processing},
              {"refused_completes", checks.refused_completes},
              {"unsettled", checks.unsettled}};
}

Json to_json(const Row& row, bool open_loop) {
  Json out{{"store", row.store},
           {"url", row.url},
           {"clients", row.clients},
           {"skipped", row.skipped.empty() ? Json(nullptr) : Json(row.skipped)}};
  if (!row.skipped.empty()) return out;
  out["durability"] = to_string(row.durability);
  out["void"] = row.is_void();
  out["faults"] = row.faults;
  out["rate"] = to_json(row.rate(), row.rates);
  out["attempted_rate"] = to_json(summarize(row.attempts), row.attempts);
  out["operations"] = Json{{"attempted", row.total.attempted},
                           {"succeeded", row.total.succeeded},
                           {"planned", open_loop ? Json(row.total.planned) : Json(nullptr)},
                           {"crashes", row.total.crashes}};
  out["errors"] = row.total.errors;
  out["latency_ns"] = to_json(row.total.uncorrected);
  out["corrected_latency_ns"] = open_loop ? to_json(row.total.corrected) : Json(nullptr);
  out["claim_ns"] = to_json(all_claims(row.total.uncorrected));
  out["corrected_claim_ns"] = open_loop ? to_json(all_claims(row.total.corrected)) : Json(nullptr);
  out["schedule_lag_ns"] = to_json(row.total.lag);
  out["longest_wait_ns"] = row.longest_wait();
  out["offered_rate_reached"] = open_loop ? Json(row.reached) : Json(nullptr);
  out["client_bound"] = row.client_bound;
  out["generator_share"] = number(row.generator_share);
  out["checks"] = to_json(row.total.checks);
  return out;
}

Json to_json(const Workload& workload) {
  return Json{{"keys", to_string(workload.keys)},
              {"duplicates", workload.duplicates},
              {"crashes", workload.crashes},
              {"payload_bytes", workload.payload},
              {"work_us", workload.work.count()},
              {"lease_us", workload.lease.count()},
              {"rate", workload.rate > 0 ? Json(workload.rate) : Json(nullptr)},
              {"callers", to_string(workload.callers)},
              {"seed", workload.seed},
              {"operations", workload.operations}};
}

}  // namespace

Json to_json(const Report& report) {
  Json out;
  out["schema"] = kReportSchema;
  out["kind"] = "run";
  out["version"] = report.version;
  out["started"] = report.started;
  out["command"] = report.command;
  out["interrupted"] = report.interrupted;
  out["machine"] = to_json(report.machine);
  out["workload"] = to_json(report.workload);
  out["plan"] = Json{{"rounds", report.rounds},
                     {"round_time_us", report.round_time.count()},
                     {"hash", report.plan_hash}};
  out["limits"] =
      Json{{"error_share", report.limits.error_share}, {"wait_us", report.limits.wait.count()}};
  out["free_store_rates"] = Json::object();
  for (const auto& [clients, rate] : report.free_rates)
    out["free_store_rates"][std::to_string(clients)] = number(rate);
  out["rows"] = Json::array();
  for (const Row& row : report.rows) out["rows"].push_back(to_json(row, report.workload.rate > 0));
  out["warnings"] = report.warnings;
  return out;
}

}  // namespace idem::bench
