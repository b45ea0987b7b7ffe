// Tables for a terminal: aligned text without escape sequences, never wider than it is told.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace idem::bench {

class Table {
 public:
  struct Column {
    std::string title;
    bool right = true;
    int drop = 0;  // when space is short, the highest goes first; 0 always stays
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as columns. Text is ASCII.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  // Columns without content in any row ("" or "-") are left out. Lines end with '\n', without
  // trailing blanks. Should the columns that stay be too wide together, their lines are cut.
  [[nodiscard]] std::string text(std::size_t width) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Breaks at blanks; every line but the first begins with `indent` blanks. A longer word is broken.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace idem::bench
