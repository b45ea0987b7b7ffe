// A report as a page: verdicts, tables and charts, made from a document of idem.bench/1 alone and
// then written as text, Markdown, HTML. Every figure on it is one number of that document, rounded.
#pragma once

#include <string>
#include <vector>

#include "idem/error.hpp"
#include "load/json.hpp"

namespace idem::bench {

struct PageColumn {
  std::string title;
  bool right = true;
  int drop = 0;  // where space is short, the highest goes first; 0 always stays
};

struct PageTable {
  std::string title;
  std::string caption;  // how to read it
  std::vector<PageColumn> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells as columns; "-": none
};

struct PageChart {
  std::string id;  // unique on the page
  std::string title;
  std::string caption;
  Json option;       // of ECharts
  int height = 320;  // pixels
};

// A sentence that is to be seen at once.
struct PageNote {
  enum class Kind : std::uint8_t { verdict, note, warning, fault };
  Kind kind = Kind::note;
  std::string text;
};
[[nodiscard]] std::string_view to_string(PageNote::Kind kind) noexcept;

struct PageSection {
  std::string title;
  std::vector<std::string> paragraphs;
  std::vector<PageTable> tables;
  std::vector<PageChart> charts;
  std::string listing;      // preformatted: a configuration
  bool on_terminal = true;  // false: only in the files
};

struct Page {
  std::string title;
  std::string started;
  std::vector<PageNote> notes;
  std::vector<PageSection> sections;
  std::vector<std::pair<std::string, std::string>> facts;  // machine, build, command
};

// invalid_argument: not a document of idem.bench/1, or a part of it is missing.
[[nodiscard]] result<Page> page_of(const Json& document);

// --- the same page, written. `width`: columns of a terminal; plain ASCII without escapes.
[[nodiscard]] std::string to_text(const Page& page, std::size_t width);
[[nodiscard]] std::string to_markdown(const Page& page);
// One file that needs no other and no network. `charts_script`: what draws the charts, "" if this
// build has none; then the page says so. `document`: embedded as it is.
[[nodiscard]] std::string to_html(const Page& page, const Json& document,
                                  std::string_view charts_script);
// Every number of the document, one to a line: part,labels,measure,value.
[[nodiscard]] std::string to_csv(const Json& document);

// What this build can draw charts with; "" if it was built without.
[[nodiscard]] std::string_view charts_script() noexcept;

// --- for the makers of pages, one to each kind of document
[[nodiscard]] Page page_of_run(const Json& document);
[[nodiscard]] Page page_of_contention(const Json& document);
[[nodiscard]] Page page_of_choose(const Json& document);
[[nodiscard]] Page page_of_capacity(const Json& document);

}  // namespace idem::bench
