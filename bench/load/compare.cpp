#include "load/compare.hpp"

#include <fmt/core.h>

#include <cmath>

namespace idem::bench {
namespace {

constexpr double kSignificance = 0.05;

result<void> check_alike(const Json& before, const Json& after) {
  for (const Json* document : {&before, &after}) {
    if (document->value("schema", "") != kReportSchema)
      return fail(errc::invalid_argument, fmt::format("not a document of {}", kReportSchema));
  }
  if (before.at("plan").at("hash") != after.at("plan").at("hash"))
    return fail(errc::invalid_argument,
                "the two were measured with different plans: same seed, keys, duplicates, crashes "
                "and operations are needed");
  for (const char* part : {"payload_bytes", "work_us", "lease_us", "rate", "callers"}) {
    if (before.at("workload").at(part) != after.at("workload").at(part))
      return fail(errc::invalid_argument,
                  fmt::format("the two were measured under different loads: {} differs", part));
  }
  return {};
}

const Json* row_like(const Json& row, const Json& document) {
  for (const Json& other : document.at("rows")) {
    if (other.at("store") == row.at("store") && other.at("clients") == row.at("clients"))
      return &other;
  }
  return nullptr;
}

std::string unusable(const Json* row) {
  if (row == nullptr) return "only in one of the two";
  if (!row->at("skipped").is_null()) return "skipped";
  return row->at("void").get<bool>() ? "void" : "";
}

void judge(const std::vector<double>& before, const std::vector<double>& after, double noise,
           Comparison& into) {
  const auto interval_before = median_interval(before);
  const auto interval_after = median_interval(after);
  if (!interval_before || !interval_after) {
    into.reason = fmt::format("fewer than {} rounds", kRoundsForInterval);
    return;
  }
  into.p = rank_test(before, after);
  const bool apart =
      interval_before->high < interval_after->low || interval_after->high < interval_before->low;
  if (*into.p >= kSignificance || !apart || std::abs(into.change) < noise) {
    into.verdict = Verdict::same;
  } else {
    into.verdict = into.change > 0 ? Verdict::faster : Verdict::slower;
  }
}

Comparison compare_row(const Json& row, const Json* other, double noise) {
  Comparison out;
  out.store = row.at("store").get<std::string>();
  out.clients = row.at("clients").get<std::uint32_t>();
  for (const Json* one : {&row, other}) {
    if (out.reason.empty()) out.reason = unusable(one);
  }
  if (!out.reason.empty()) return out;
  const auto before = row.at("rate").at("rounds").get<std::vector<double>>();
  const auto after = other->at("rate").at("rounds").get<std::vector<double>>();
  out.before = summarize(before).median;
  out.after = summarize(after).median;
  out.change = out.before > 0 ? out.after / out.before - 1 : 0;
  judge(before, after, noise, out);
  return out;
}

}  // namespace

std::string_view to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::same:
      return "~";
    case Verdict::faster:
      return "faster";
    case Verdict::slower:
      return "slower";
    case Verdict::unknown:
      return "?";
  }
  return "";
}

result<std::vector<Comparison>> compare(const Json& before, const Json& after, double noise) {
  try {
    if (const auto alike = check_alike(before, after); !alike) return alike.error();
    std::vector<Comparison> rows;
    for (const Json& row : before.at("rows"))
      rows.push_back(compare_row(row, row_like(row, after), noise));
    return rows;
  } catch (const nlohmann::json::exception& problem) {
    return fail(errc::invalid_argument,
                fmt::format("a damaged document of {}: {}", kReportSchema, words_of(problem)));
  }
}

}  // namespace idem::bench
