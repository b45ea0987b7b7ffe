// Pages as text for a terminal, and as Markdown.
#include "load/table.hpp"
#include "report/page.hpp"

namespace idem::bench {
namespace {

constexpr std::size_t kIndent = 9;

std::string labelled(std::string label, const std::string& text, std::size_t width) {
  label.resize(std::max(label.size() + 1, kIndent), ' ');
  return wrapped(label + text, width, kIndent) + '\n';
}

std::string table_text(const PageTable& table, std::size_t width) {
  std::vector<Table::Column> columns;
  for (const PageColumn& column : table.columns)
    columns.push_back({column.title, column.right, column.drop});
  Table made(columns);
  for (const auto& row : table.rows) made.add(row);
  std::string out;
  if (!table.title.empty()) out += wrapped(table.title, width, 0) + '\n';
  out += made.text(width);
  if (!table.caption.empty()) out += wrapped("  " + table.caption, width, 2) + '\n';
  return out;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
      continue;
    }
    if (c == '|' || c == '`' || c == '*' || c == '_' || c == '[') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string table_markdown(const PageTable& table) {
  std::string out;
  if (!table.title.empty()) out += "**" + escaped(table.title) + "**\n\n";
  std::string rule = "|";
  out += "|";
  for (const PageColumn& column : table.columns) {
    out += " " + escaped(column.title) + " |";
    rule += column.right ? "---:|" : "---|";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (const std::string& cell : row) out += " " + escaped(cell) + " |";
    out += "\n";
  }
  if (!table.caption.empty()) out += "\n" + escaped(table.caption) + "\n";
  return out + "\n";
}

}  // namespace

std::string to_text(const Page& page, std::size_t width) {
  std::string out;
  for (const PageSection& section : page.sections) {
    if (!section.on_terminal) continue;
    for (const PageTable& table : section.tables) out += table_text(table, width) + '\n';
  }
  for (const PageNote& note : page.notes)
    out += labelled(std::string(to_string(note.kind)), note.text, width);
  for (const PageSection& section : page.sections) {
    if (!section.listing.empty()) out += '\n' + section.title + ":\n\n" + section.listing;
  }
  return out;
}

std::string to_markdown(const Page& page) {
  std::string out = "# " + escaped(page.title) + "\n\n";
  for (const PageNote& note : page.notes)
    out += "- **" + std::string(to_string(note.kind)) + "** " + escaped(note.text) + "\n";
  for (const PageSection& section : page.sections) {
    out += "\n## " + escaped(section.title) + "\n\n";
    for (const std::string& paragraph : section.paragraphs) out += escaped(paragraph) + "\n\n";
    for (const PageTable& table : section.tables) out += table_markdown(table);
    if (!section.listing.empty()) out += "```yaml\n" + section.listing + "```\n";
  }
  out += "\n## Measured on\n\n";
  out += "- started: " + escaped(page.started) + "\n";
  for (const auto& [name, text] : page.facts)
    out += "- " + escaped(name) + ": " + escaped(text) + "\n";
  return out;
}

}  // namespace idem::bench
