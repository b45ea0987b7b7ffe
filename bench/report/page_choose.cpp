#include <fmt/core.h>

#include "report/figures.hpp"
#include "report/page_rows.hpp"

namespace idem::bench {
namespace {

const Json* candidate_named(const Json& document, const Json& name) {
  for (const Json& one : document.at("candidates")) {
    if (one.at("store") == name) return &one;
  }
  return nullptr;
}

const Json* row_named(const Json& rows, const Json& name) {
  for (const Json& row : rows) {
    if (row.at("store") == name) return &row;
  }
  return nullptr;
}

std::string joined(const Json& texts, const char* between) {
  std::string out;
  for (const Json& text : texts) out += (out.empty() ? "" : between) + text.get<std::string>();
  return out;
}

void add_recommendation(Page& page, const Json& document) {
  if (document.at("interrupted").get<bool>()) {
    page.notes.push_back({PageNote::Kind::verdict, "no recommendation: it was interrupted"});
    return;
  }
  const Json& found = document.at("recommendation");
  const Json* chosen = candidate_named(document, found.at("store"));
  if (chosen == nullptr) {
    std::string text = "none of them meets the needs with the headroom asked for";
    if (found.at("nearest").is_string())
      text +=
          fmt::format("; {} only lacks capacity: {}", text_figure(found, "nearest"),
                      joined(candidate_named(document, found.at("nearest"))->at("against"), "; "));
    page.notes.push_back({PageNote::Kind::verdict, text});
  } else {
    std::string text = fmt::format("RECOMMENDED {}: the simplest that meets the needs; {}",
                                   text_figure(*chosen, "store"), text_figure(*chosen, "upkeep"));
    if (chosen->at("headroom").is_number())
      text += fmt::format(", {} headroom", ratio_figure(*chosen, "headroom"));
    if (chosen->at("latency_ns").is_number())
      text += fmt::format(", {} at the rate", time_figure(*chosen, "latency_ns"));
    page.notes.push_back({PageNote::Kind::verdict, text});
    if (found.at("runner_up").is_string())
      page.notes.push_back(
          {PageNote::Kind::note, "next after it: " + text_figure(found, "runner_up")});
  }
  for (const Json& flip : found.at("flips")) {
    const std::string then =
        flip.at("store").is_null() ? "none of these" : text_figure(flip, "store");
    page.notes.push_back({PageNote::Kind::note,
                          flip.value("measured", true)
                              ? "would change to " + then + " if: " + text_figure(flip, "if")
                              : text_figure(flip, "if") + ": the stores were not set so; choose "
                                                          "again with that --durability"});
  }
  for (const Json& one : document.at("candidates")) {
    if (!one.at("fits").get<bool>())
      page.notes.push_back({PageNote::Kind::note, text_figure(one, "store") + " falls: " +
                                                      joined(one.at("against"), "; ")});
  }
}

PageTable candidates_table(const Json& document) {
  PageTable table;
  table.caption =
      "AT THE RATE: claims from their due time, whatever they were told; a p99 of fewer than 100 "
      "claims is the longest of them. Tiers promise different "
      "things: rates of different tiers are not ranked.";
  table.columns = {{"STORE", false, 0},
                   {"TIER", false, 0},
                   {"CAPACITY/S", true, 0},
                   {"95% CI", false, 5},
                   {"AT THE RATE: P50", true, 4},
                   {"P99", true, 1},
                   {"P99.9", true, 3},
                   {"OF CLAIMS", true, 6},
                   {"REPLAY P99", true, 2},
                   {"ERRORS", true, 1},
                   {"FITS", false, 0}};
  for (const Json& one : document.at("candidates")) {
    static const Json kNone = Json::object();
    const Json* closed = row_named(document.at("rows"), one.at("store"));
    const Json* paced = row_named(document.at("at_rate"), one.at("store"));
    const Json& at_rate = paced == nullptr ? kNone : *paced;
    table.rows.push_back({text_figure(one, "store"), text_figure(one, "durability"),
                          rate_figure(*closed, "rate.median"),
                          interval_figure(*closed, "rate.ci95"),
                          time_figure(at_rate, "corrected_claim_ns.p50"),
                          time_figure(at_rate, "corrected_claim_ns.p99"),
                          time_figure(at_rate, "corrected_claim_ns.p999"),
                          count_figure(at_rate, "corrected_claim_ns.count"),
                          time_figure(at_rate, "corrected_latency_ns.replay.p99"),
                          errors_figure(paced == nullptr ? *closed : at_rate),
                          one.at("fits").get<bool>() ? "yes" : "no"});
  }
  return table;
}

std::string needs_text(const Json& needs) {
  std::string text = needs.at("rate").is_number()
                         ? rate_figure(needs, "rate") + " claims a second, "
                         : std::string("as many claims as they give, ");
  text += fmt::format(
      "{} clients in {} processes on {} hosts, {} duplicates, results of {} bytes, "
      "tier '{}' or better",
      count_figure(needs, "clients"), count_figure(needs, "processes"),
      count_figure(needs, "hosts"), share_figure(needs, "duplicates"),
      count_figure(needs, "payload_bytes"), text_figure(needs, "durability"));
  if (needs.at("slo").is_string()) text += ", " + text_figure(needs, "slo");
  return text + ".";
}

}  // namespace

Page page_of_choose(const Json& document) {
  Page page;
  page.title = "Which store?";
  add_recommendation(page, document);
  PageSection section;
  section.title = "Needs and candidates";
  section.paragraphs = {
      "Needed: " + needs_text(document.at("needs")),
      "The rule: of the stores that keep their promises, keep enough, can be shared as widely as "
      "needed and hold the latency goal at the rate, the one that costs least to run and has "
      "twice the rate in capacity (the low end of the interval). Never the fastest for being "
      "fastest."};
  section.tables.push_back(candidates_table(document));
  page.sections.push_back(std::move(section));
  if (document.at("config").is_string()) {
    PageSection config;
    config.title = "Ready to use: idem.yml";
    config.listing = document.at("config").get<std::string>();
    page.sections.push_back(std::move(config));
  }
  PageSection capacity;
  capacity.title = "Capacity (closed loop)";
  capacity.on_terminal = false;
  capacity.tables.push_back(rows_table(document.at("rows"), false));
  add_row_charts(capacity, "capacity", document.at("rows"), false);
  page.sections.push_back(std::move(capacity));
  if (!document.at("at_rate").empty()) {
    PageSection paced;
    paced.title = "At the stated rate (open loop)";
    paced.on_terminal = false;
    paced.tables.push_back(rows_table(document.at("at_rate"), true));
    add_row_charts(paced, "paced", document.at("at_rate"), true);
    page.sections.push_back(std::move(paced));
  }
  page.sections.push_back(checks_section(document.at("rows")));
  return page;
}

}  // namespace idem::bench
