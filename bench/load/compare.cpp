#include "load/compare.hpp"

#include <fmt/core.h>

#include <cmath>

namespace idem::bench {
namespace {

constexpr double kSignificance = 0.05;
// Every row of a comparison is a test of its own; pairs are cheap enough to ask for more.
constexpr double kPairedSignificance = 0.01;

result<void> check_alike(const Json& before, const Json& after) {
  for (const Json* document : {&before, &after}) {
    if (document->value("schema", "") != kReportSchema)
      return fail(errc::invalid_argument, fmt::format("not a document of {}", kReportSchema));
  }
  const std::string kind = before.value("kind", "run");
  const std::string other = after.value("kind", "run");
  if (kind != other)
    return fail(errc::invalid_argument,
                fmt::format("the two are of different kinds: '{}' and '{}'", kind, other));
  if (kind != "run")
    return fail(errc::invalid_argument,
                fmt::format("measurements of kind '{}' are not compared: only those of idem bench "
                            "run are",
                            kind));
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

Error damaged(const Json::exception& problem) {
  return fail(errc::invalid_argument,
              fmt::format("a damaged document of {}: {}", kReportSchema, words_of(problem)));
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

Verdict verdict_of(bool proven, double change, double noise) {
  if (!proven || std::abs(change) < noise) return Verdict::same;
  return change > 0 ? Verdict::faster : Verdict::slower;
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
  into.verdict = verdict_of(*into.p < kSignificance && apart, into.change, noise);
}

Comparison named_as(const Json& row) {
  Comparison out;
  out.store = row.at("store").get<std::string>();
  out.clients = row.at("clients").get<std::uint32_t>();
  return out;
}

std::vector<double> rounds_of(const Json& row) {
  return row.at("rate").at("rounds").get<std::vector<double>>();
}

Comparison compare_row(const Json& row, const Json* other, double noise) {
  Comparison out = named_as(row);
  for (const Json* one : {&row, other}) {
    if (out.reason.empty()) out.reason = unusable(one);
  }
  if (!out.reason.empty()) return out;
  const std::vector<double> before = rounds_of(row);
  const std::vector<double> after = rounds_of(*other);
  out.before = summarize(before).median;
  out.after = summarize(after).median;
  out.change = out.before > 0 ? out.after / out.before - 1 : 0;
  judge(before, after, noise, out);
  return out;
}

// The rate of a row in every document of one build; empty and the reason if one has none.
std::vector<double> rates_in(std::span<const Json> documents, const Json& row,
                             std::string& reason) {
  std::vector<double> rates;
  for (const Json& document : documents) {
    const Json* one = row_like(row, document);
    if (reason.empty()) reason = unusable(one);
    if (!reason.empty()) return {};
    rates.push_back(summarize(rounds_of(*one)).median);
    if (rates.back() <= 0) reason = "nothing succeeded in a round";
  }
  return rates;
}

void judge_pairs(const std::vector<double>& before, const std::vector<double>& after, double noise,
                 Comparison& into) {
  std::vector<double> ratios(before.size());
  std::vector<double> differences(before.size());  // logarithms: twice and half are equally far
  for (std::size_t i = 0; i < before.size(); ++i) {
    ratios[i] = after[i] / before[i];
    differences[i] = std::log(ratios[i]);
  }
  into.before = summarize(before).median;
  into.after = summarize(after).median;
  into.change = summarize(ratios).median - 1;
  if (before.size() < kPairsForVerdict) {
    into.reason = fmt::format("fewer than {} pairs", kPairsForVerdict);
    return;
  }
  into.p = signed_rank_test(differences);
  into.verdict = verdict_of(*into.p < kPairedSignificance, into.change, noise);
}

Comparison compare_row_in_pairs(const Json& row, std::span<const Json> before,
                                std::span<const Json> after, double noise) {
  Comparison out = named_as(row);
  const std::vector<double> rates_before = rates_in(before, row, out.reason);
  const std::vector<double> rates_after = rates_in(after, row, out.reason);
  if (out.reason.empty()) judge_pairs(rates_before, rates_after, noise, out);
  return out;
}

result<void> check_pairs(std::span<const Json> before, std::span<const Json> after) {
  if (before.empty() || before.size() != after.size())
    return fail(errc::invalid_argument, "as many measurements of one build as of the other");
  for (const auto& documents : {before, after}) {
    for (const Json& document : documents) {
      if (const auto alike = check_alike(before.front(), document); !alike) return alike;
    }
  }
  return {};
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
    return damaged(problem);
  }
}

result<std::vector<Comparison>> compare_pairs(std::span<const Json> before,
                                              std::span<const Json> after, double noise) {
  try {
    if (const auto alike = check_pairs(before, after); !alike) return alike.error();
    std::vector<Comparison> rows;
    for (const Json& row : before.front().at("rows"))
      rows.push_back(compare_row_in_pairs(row, before, after, noise));
    return rows;
  } catch (const nlohmann::json::exception& problem) {
    return damaged(problem);
  }
}

}  // namespace idem::bench
