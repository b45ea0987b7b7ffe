#include "report/page.hpp"

#include <fmt/core.h>

#include "report/figures.hpp"

namespace idem::bench {
namespace {

void add_fact(Page& page, const char* name, std::string text) {
  if (!text.empty() && text != "-") page.facts.emplace_back(name, std::move(text));
}

void add_header(Page& page, const Json& document) {
  page.started = document.value("started", "");
  const Json& m = at_path(document, "machine");
  add_fact(page, "idem",
           fmt::format("{} ({}, {})", text_figure(document, "version"), text_figure(m, "build"),
                       text_figure(m, "compiler")));
  const bool is_virtual = m.is_object() && m.value("virtual", false);
  add_fact(page, "machine",
           fmt::format("{}, {} cores{}, {}", text_figure(m, "cpu"), count_figure(m, "cores"),
                       is_virtual ? " (virtual)" : "", text_figure(m, "kernel")));
  add_fact(page, "disk",
           fmt::format("{} at {}, fdatasync p50 {} p99 {}", text_figure(m, "filesystem"),
                       text_figure(m, "data_dir"), time_figure(m, "fdatasync_p50_ns"),
                       time_figure(m, "fdatasync_p99_ns")));
  add_fact(page, "command", text_figure(document, "command"));
  if (document.value("interrupted", false))
    page.notes.push_back({PageNote::Kind::warning, "interrupted: only complete rounds count"});
  const Json& warnings = at_path(document, "warnings");
  if (!warnings.is_array()) return;
  for (const Json& warning : warnings)
    page.notes.push_back({PageNote::Kind::warning, warning.get<std::string>()});
}

result<Page> made(const Json& document) {
  if (!document.is_object() || document.value("schema", "") != kReportSchema)
    return fail(errc::invalid_argument, fmt::format("not a document of {}", kReportSchema));
  const std::string kind = document.value("kind", "run");
  Page page;
  if (kind == "run") {
    page = page_of_run(document);
  } else if (kind == "contention") {
    page = page_of_contention(document);
  } else if (kind == "choose") {
    page = page_of_choose(document);
  } else if (kind == "capacity") {
    page = page_of_capacity(document);
  } else {
    return fail(errc::invalid_argument, fmt::format("a measurement of kind '{}' is not known "
                                                    "here: made by a newer idem?",
                                                    kind));
  }
  add_header(page, document);
  return page;
}

}  // namespace

std::string_view to_string(PageNote::Kind kind) noexcept {
  switch (kind) {
    case PageNote::Kind::verdict:
      return "verdict";
    case PageNote::Kind::note:
      return "note";
    case PageNote::Kind::warning:
      return "warning";
    case PageNote::Kind::fault:
      break;
  }
  return "VOID";
}

result<Page> page_of(const Json& document) {
  try {
    return made(document);
  } catch (const Json::exception& missing) {
    return fail(errc::invalid_argument,
                fmt::format("not a whole document of {}: {}", kReportSchema, words_of(missing)));
  }
}

}  // namespace idem::bench
