#include "load/table.hpp"

#include <algorithm>
#include <numeric>

namespace idem::bench {
namespace {

constexpr std::size_t kGap = 2;

bool says_nothing(const std::string& cell) { return cell.empty() || cell == "-"; }

void trim_right(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

std::string Table::text(std::size_t width) const {
  std::vector<std::size_t> shown;
  std::vector<std::size_t> wide(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    wide[i] = columns_[i].title.size();
    for (const auto& row : rows_) wide[i] = std::max(wide[i], row[i].size());
    const bool empty = std::all_of(rows_.begin(), rows_.end(),
                                   [i](const auto& row) { return says_nothing(row[i]); });
    if (!empty || columns_[i].drop == 0) shown.push_back(i);
  }
  const auto total = [&] {
    return std::accumulate(shown.begin(), shown.end(), std::size_t{0},
                           [&](std::size_t sum, std::size_t i) { return sum + wide[i] + kGap; });
  };
  while (!shown.empty() && total() > width + kGap) {
    const auto first = std::max_element(
        shown.begin(), shown.end(),
        [&](std::size_t a, std::size_t b) { return columns_[a].drop < columns_[b].drop; });
    if (columns_[*first].drop == 0) break;
    shown.erase(first);
  }

  std::string out;
  const auto line = [&](auto cell) {
    std::string built;
    for (const std::size_t i : shown) {
      const std::string text = cell(i);
      const std::string pad(wide[i] - text.size(), ' ');
      built += (columns_[i].right ? pad + text : text + pad) + std::string(kGap, ' ');
    }
    built.resize(std::min(built.size(), width));
    trim_right(built);
    out += built + '\n';
  };
  line([&](std::size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) line([&](std::size_t i) { return row[i]; });
  return out;
}

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  width = std::max(width, indent + 10);
  std::string out;
  std::size_t column = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    std::string word = text.substr(at, end - at);
    at = end + 1;
    if (column > indent && column + 1 + word.size() > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    while (column + word.size() > width) {
      const std::size_t room = width - column;
      out += word.substr(0, room) + '\n' + std::string(indent, ' ');
      word.erase(0, room);
      column = indent;
    }
    out += word;
    column += word.size();
  }
  return out;
}

}  // namespace idem::bench
