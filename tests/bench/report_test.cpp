#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "capacity/capacity.hpp"
#include "choose/choose.hpp"
#include "contention/contention.hpp"
#include "idem/testing/reference_store.hpp"
#include "load/units.hpp"
#include "report/page.hpp"

namespace idem::bench {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

Subject reference(const std::string& name) {
  return {name,
          []() -> result<Fixture> {
            return Fixture{"", nullptr, std::make_shared<testing::ReferenceStore>(system_clock())};
          },
          true};
}

const std::atomic<bool> kGoOn{false};

Machine some_machine() {
  Machine machine;
  machine.cpu = "a cpu";
  machine.cores = 2;
  machine.load_average = 0.1;
  machine.build = "release";
  machine.filesystem = "ext4";
  return machine;
}

Json with_header(const char* kind, Json found) {
  Json document{{"schema", kReportSchema}, {"kind", kind},
                {"version", "0"},          {"started", "2026-01-01T00:00:00Z"},
                {"command", "idem bench"}, {"machine", to_json(some_machine())}};
  document.update(found);
  document["warnings"] = Json::array({"a warning"});
  return document;
}

Json run_document() {
  SessionOptions options;
  options.clients = {2};
  options.rounds = 6;
  options.round_time = 1s;
  options.workload.operations = 500;
  options.workload.duplicates = 0.3;
  Report report;
  report.machine.cores = 2;
  run_session(options, {reference("a"), reference("b")}, system_clock(), kGoOn, {}, report);
  return with_header("run", to_json(report));
}

Json choose_document() {
  ChooseOptions options;
  options.needs.durability = Durability::none;
  options.needs.rate = 500;
  options.needs.clients = 2;
  options.needs.slo = Slo{0.99, 1'000'000'000, "p99<1s"};
  options.budget = 2s;
  return with_header("choose",
                     to_json(run_choice(options, {reference("a"), reference("b")}, some_machine(),
                                        system_clock(), kGoOn, [](const Progress&, bool) {})));
}

Json capacity_document() {
  CapacityOptions options;
  options.clients = 2;
  options.rounds = 1;
  options.shares = {0.1, 0.2};
  options.refinements = 1;
  options.step_time = 50ms;
  options.slo = Slo{0.99, 10, "p99<10ns"};
  return with_header("capacity",
                     to_json(run_capacity(options, {reference("a")}, system_clock(), kGoOn, {})));
}

Json contention_document() {
  ContentionOptions options;
  options.clients = {2};
  options.rounds = 6;
  options.round_time = 10ms;
  options.claims = 2000;
  options.storm_clients = 3;
  options.storms = 1;
  options.work = 5ms;
  const Place place{"a", *reference("a").open(), true};
  return with_header("contention",
                     to_json(run_contention(options, contenders_at(place, system_clock()),
                                            system_clock(), kGoOn, {})));
}

struct Kind {
  const char* name;
  Json (*make)();
};
class EveryPage : public ::testing::TestWithParam<Kind> {};

// Every way in which a number of the document may be written.
void forms_of(const Json& value, std::set<std::string>& into) {
  if (value.is_number()) {
    const double number = value.get<double>();
    into.insert(value.dump());
    if (number < 0) return;
    into.insert(si(number));
    into.insert(duration_text(static_cast<Nanos>(number)));
    into.insert(percent(number));
    char text[64];
    std::snprintf(text, sizeof text, "%.2fx", number);
    into.insert(text);
  } else if (value.is_structured()) {
    for (const Json& inner : value) forms_of(inner, into);
  } else if (value.is_string()) {
    into.insert(value.get<std::string>());
  }
}

TEST_P(EveryPage, B49_EveryFigureOfATableIsANumberOfTheDocument) {
  const Json document = GetParam().make();
  const Page page = page_of(document).value();
  std::set<std::string> forms;
  forms_of(document, forms);
  int figures = 0;
  const std::regex number("[0-9][0-9.]*[a-zA-Z%]*");
  for (const PageSection& section : page.sections) {
    for (const PageTable& table : section.tables) {
      for (const auto& row : table.rows) {
        for (const std::string& cell : row) {
          if (forms.count(cell) > 0) continue;
          for (std::sregex_iterator at(cell.begin(), cell.end(), number), end; at != end; ++at) {
            ++figures;
            EXPECT_EQ(forms.count(at->str()), 1U) << at->str() << " in " << cell;
          }
        }
      }
    }
  }
  EXPECT_GE(page.sections.size(), 2U);
}

TEST_P(EveryPage, B49_IsMadeAgainFromItsTextAndIsIdentical) {
  const Json document = GetParam().make();
  const Json read = Json::parse(document.dump(1));
  EXPECT_EQ(to_html(page_of(document).value(), document, "script"),
            to_html(page_of(read).value(), read, "script"));
  EXPECT_EQ(to_markdown(page_of(document).value()), to_markdown(page_of(read).value()));
  EXPECT_EQ(to_csv(document), to_csv(read));
}

TEST_P(EveryPage, B47_WithoutChartsThePageSaysSoAndKeepsVerdictAndTables) {
  const Json document = GetParam().make();
  const Page page = page_of(document).value();
  const std::string html = to_html(page, document, "");
  EXPECT_THAT(html, HasSubstr("has no charts"));
  EXPECT_THAT(html, Not(HasSubstr("class=\"chart\"")));
  EXPECT_THAT(html, Not(HasSubstr("id=\"options\"")));
  EXPECT_THAT(html, HasSubstr("<table>"));
  EXPECT_THAT(html, HasSubstr("a warning"));
  EXPECT_THAT(to_html(page, document, "draw()"), HasSubstr("<noscript>"));
}

// Two series that can be told apart by colour alone cannot be told apart by everybody.
TEST_P(EveryPage, B48_SeriesDifferByMarkerOrDash) {
  const Page page = page_of(GetParam().make()).value();
  for (const PageSection& section : page.sections) {
    for (const PageChart& chart : section.charts) {
      std::set<std::string> seen;
      for (const Json& series : chart.option.at("series")) {
        if (series.at("type") == "bar") continue;  // bars have a pattern each: page's script
        const Json dash =
            series.contains("lineStyle") ? series["lineStyle"].value("type", Json()) : Json();
        const std::string look =
            series.value("symbol", Json()).dump() + dash.dump() + series.at("type").dump();
        EXPECT_TRUE(seen.insert(look).second) << chart.id << ": " << look;
      }
    }
  }
}

TEST_P(EveryPage, B46_NamesNoOtherFileAndNoHost) {
  const Json document = GetParam().make();
  const std::string html = to_html(page_of(document).value(), document, "draw()");
  for (const char* outside : {"src=", "href=", "url(", "http://", "https://", "@import"})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
}

TEST_P(EveryPage, B50_NamesRenderAsText) {
  std::string text = GetParam().make().dump();
  // The store's name wherever it stands: in labels, tables and chart options.
  const std::string evil = R"(</script><script>alert(\"1\")</script> 'ü' <!-- & |)";
  text = std::regex_replace(text, std::regex("\"a\""), "\"" + evil + "\"");
  const Json document = Json::parse(text);
  const std::string html = to_html(page_of(document).value(), document, "draw()");
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("<!--")));
  EXPECT_THAT(html, HasSubstr("&lt;/script&gt;&lt;script&gt;alert"));
  EXPECT_THAT(html, HasSubstr("ü"));
  EXPECT_THAT(to_markdown(page_of(document).value()), Not(HasSubstr("<script>")));
}

TEST_P(EveryPage, FitsSixtyColumnsWithoutEscapes) {
  const Json document = GetParam().make();
  const std::string text = to_text(page_of(document).value(), 60);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    const bool remark = line.find("# ") != std::string::npos;  // of the YAML
    EXPECT_TRUE(remark || line.size() <= 60) << line;
    begin = end + 1;
  }
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST_P(EveryPage, CsvHoldsEveryNumberOnALineOfItsOwn) {
  const Json document = GetParam().make();
  const std::string csv = to_csv(document);
  EXPECT_THAT(csv, HasSubstr("part,labels,measure,value\n"));
  EXPECT_THAT(csv, HasSubstr("=a"));
  EXPECT_GT(std::count(csv.begin(), csv.end(), '\n'), 20);
}

TEST_P(EveryPage, ADamagedDocumentIsRefusedInWords) {
  Json document = GetParam().make();
  document.erase("plan");
  document.erase("needs");
  document.erase("rows");
  EXPECT_EQ(page_of(document).error().code, errc::invalid_argument);
  EXPECT_EQ(page_of(Json(3)).error().code, errc::invalid_argument);
  document["kind"] = "of tomorrow";
  EXPECT_THAT(page_of(document).error().message, HasSubstr("newer idem"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryPage,
                         ::testing::Values(Kind{"run", run_document},
                                           Kind{"choose", choose_document},
                                           Kind{"capacity", capacity_document},
                                           Kind{"contention", contention_document}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(Page, B44_RolesAreApartInTextAndHtml) {
  const Json document = run_document();
  const Page page = page_of(document).value();
  for (const std::string& text : {to_text(page, 200), to_html(page, document, "")}) {
    for (const char* column : {"WIN P50", "COMPLETE P99", "REPLAY P99"})
      EXPECT_THAT(text, HasSubstr(column));
  }
  // In text a column stands only if something stands in it.
  EXPECT_THAT(to_html(page, document, ""), HasSubstr("BUSY P99"));
}

TEST(Machine, B41_DebugTmpfsAndBusyAreEachWarnedOfWithACure) {
  Machine machine = some_machine();
  EXPECT_TRUE(doubts_about(machine).empty());
  machine.build = "asan";
  EXPECT_THAT(doubts_about(machine).at(0), HasSubstr("--preset release"));
  machine.build = "release";
  machine.filesystem = "tmpfs";
  EXPECT_THAT(doubts_about(machine).at(0), HasSubstr("TMPDIR"));
  machine.filesystem = "ext4";
  machine.load_average = 1.5;
  EXPECT_THAT(doubts_about(machine).at(0), HasSubstr("idle"));
}

}  // namespace
}  // namespace idem::bench
