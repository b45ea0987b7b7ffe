// The page as one HTML file: page/page.html filled by mustache, with style, script, chart options
// and all numbers inside.
#include <kainjow/mustache.hpp>

#include "report/page.hpp"
#include "report/page_files.hpp"

namespace idem::bench {
namespace {

namespace mustache = kainjow::mustache;
using mustache::data;

data text_list(const std::vector<std::string>& texts) {
  data list{data::type::list};
  for (const std::string& text : texts) list << data{text};
  return list;
}

data table_data(const PageTable& table) {
  data made;
  data columns{data::type::list};
  for (const PageColumn& column : table.columns) {
    data one;
    one.set("title", column.title);
    one.set("left", !column.right);
    columns << one;
  }
  data rows{data::type::list};
  for (const auto& row : table.rows) {
    data cells{data::type::list};
    for (std::size_t i = 0; i < row.size(); ++i) {
      data cell;
      cell.set("text", row[i]);
      cell.set("left", !table.columns[i].right);
      cells << cell;
    }
    data one;
    one.set("cells", cells);
    rows << one;
  }
  made.set("columns", columns);
  made.set("rows", rows);
  if (!table.caption.empty()) made.set("caption", table.caption);
  return made;
}

data section_data(const PageSection& section, bool with_charts) {
  data made;
  made.set("title", section.title);
  made.set("paragraphs", text_list(section.paragraphs));
  data tables{data::type::list};
  for (const PageTable& table : section.tables) tables << table_data(table);
  made.set("tables", tables);
  if (!section.listing.empty()) made.set("listing", section.listing);
  data plots{data::type::list};
  for (const PageChart& chart : section.charts) {
    if (!with_charts) break;
    data one;
    one.set("id", chart.id);
    one.set("title", chart.title);
    one.set("caption", chart.caption);
    one.set("height", std::to_string(chart.height));
    plots << one;
  }
  made.set("plots", plots);
  return made;
}

// JSON inside a script element: with no '<' left, nothing in it can end the element or open a
// comment.
std::string for_script(const Json& value) {
  std::string out;
  for (const char c : value.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

Json chart_options(const Page& page) {
  Json options = Json::object();
  for (const PageSection& section : page.sections) {
    for (const PageChart& chart : section.charts) options[chart.id] = chart.option;
  }
  return options;
}

}  // namespace

std::string to_html(const Page& page, const Json& document, std::string_view script) {
  data root;
  root.set("title", page.title);
  root.set("started", page.started);
  root.set("style", std::string(page_style()));
  data notes{data::type::list};
  for (const PageNote& note : page.notes) {
    data one;
    one.set("kind", std::string(to_string(note.kind)));
    one.set("text", note.text);
    notes << one;
  }
  root.set("notes", notes);
  data sections{data::type::list};
  for (const PageSection& section : page.sections)
    sections << section_data(section, !script.empty());
  root.set("sections", sections);
  data facts{data::type::list};
  for (const auto& [name, text] : page.facts) {
    data one;
    one.set("name", name);
    one.set("text", text);
    facts << one;
  }
  root.set("facts", facts);
  root.set("raw", document.dump(1, ' ', false, Json::error_handler_t::replace));
  root.set("sort", std::string(page_sort()));
  root.set("charts", !script.empty());
  root.set("options", for_script(chart_options(page)));
  root.set("script", std::string(script));
  mustache::mustache form{std::string(page_form())};
  return form.render(root);
}

std::string_view charts_script() noexcept { return page_script(); }

}  // namespace idem::bench
