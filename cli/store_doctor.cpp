// idem store doctor: what is wrong with the place of a store, and what to do.
#include <fmt/core.h>

#include <algorithm>

#include "commands.hpp"
#include "options.hpp"

namespace idem::cli {

namespace {

constexpr std::size_t kRecordsPerPage = 500;

struct Options {
  std::string min_durability;
  bool records = false;
};

std::string_view word_of(Finding::Severity severity) {
  switch (severity) {
    case Finding::Severity::ok:
      return "ok";
    case Finding::Severity::warn:
      return "warn";
    case Finding::Severity::bad:
      return "bad";
  }
  return "?";
}

std::optional<Durability> durability_of(const std::string& word) {
  if (word == "none") return Durability::none;
  if (word == "process") return Durability::process;
  if (word == "power") return Durability::power;
  return std::nullopt;
}

std::string text_of(const Findings& findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.setting.size());
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<4}  {:<{}}  {}\n", word_of(finding.severity), finding.setting, width,
                        printable(finding.what));
    if (finding.severity != Finding::Severity::ok && !finding.remedy.empty())
      text += fmt::format("      {:<{}}  try: {}\n", "", width, printable(finding.remedy));
  }
  return text;
}

// What to do about a record that could not be read: only a damaged one is ever to be deleted.
std::string remedy_of(const Error& error) {
  if (error.code == errc::corrupt)
    return "put back a backup, or delete that record by the store's own means";
  return "once the store answers, look again: idem store doctor --records   (nothing says that a "
         "record is damaged)";
}

// Reads every record: damage shows when it is read, and a claim is the wrong moment for that.
Finding look_at_records(const StoreChoice& choice) {
  OpenOptions options;
  options.create = false;
  const auto store = open(choice.url, options);
  if (!store)
    return {Finding::Severity::bad, "records", "not read: " + store.error().message,
            "idem store doctor --store URL   (without --records: what is wrong with the place)"};
  ListQuery query;
  query.limit = kRecordsPerPage;
  std::uint64_t read = 0;
  do {
    const auto page = (*store)->list(query);
    if (!page)
      return {Finding::Severity::bad, "records",
              fmt::format("after {} that are whole: {}", read, page.error().message),
              remedy_of(page.error())};
    read += page->items.size();
    query.cursor = page->cursor;
  } while (!query.cursor.empty());
  return {Finding::Severity::ok, "records", fmt::format("{} read, all whole", read), ""};
}

ExitCode doctor(const Options& options, Context& context) {
  const StoreChoice choice = chosen_store_or_runs(context);
  DiagnoseOptions examine;
  examine.open.create = false;
  examine.min_durability = durability_of(options.min_durability);
  Findings findings = diagnose(choice.url, examine);
  if (options.records) findings.push_back(look_at_records(choice));
  const bool bad = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Finding::Severity::bad;
  });
  if (context.json) {
    Json document{{"outcome", bad ? "bad" : "ok"}, {"findings", Json::array()}};
    for (const Finding& finding : findings) {
      Json row{{"severity", word_of(finding.severity)}, {"setting", finding.setting}};
      row["what"] = finding.what;
      if (!finding.remedy.empty()) row["remedy"] = finding.remedy;
      document["findings"].push_back(std::move(row));
    }
    print_document(document);
  } else {
    print_text(text_of(findings));
  }
  return bad ? ExitCode::check_failed : ExitCode::done;
}

}  // namespace

void add_store_doctor(CLI::App& family, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* leaf =
      add_leaf(family, context, "doctor",
               "Look over a store's place: settings that lose results or let work be done twice\n"
               "Exit status 1 if something is bad",
               {"idem store doctor --store sqlite:orders.db",
                "idem store doctor --store sqlite:orders.db --min-durability power --records"},
               kNamedStoreOrRuns);
  leaf->add_option("--min-durability", options->min_durability,
                   "what must survive: none, process (a killed server) or power (a power cut)")
      ->type_name("WORD")
      ->default_str("what the URL says")
      ->check(CLI::IsMember({"none", "process", "power"}));
  leaf->add_flag("--records", options->records,
                 "read every record, too: takes as long as an export");
  on_run(leaf, context, options, doctor);
}

}  // namespace idem::cli
