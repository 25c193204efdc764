// A table of text whose columns are as wide as what stands in them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::ctl {

class Table {
 public:
  // A heading that starts with '>' has its column flush right.
  explicit Table(std::vector<std::string> headings) {
    for (std::string& heading : headings) {
      const bool right = !heading.empty() && heading.front() == '>';
      right_.push_back(right);
      if (right) heading.erase(0, 1);
    }
    rows_.push_back(std::move(headings));
  }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }

  std::string Text() const {
    std::vector<std::size_t> widths(right_.size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string gap(widths[i] - row[i].size(), ' ');
        line += (i > 0 ? "  " : "") + (right_[i] ? gap + row[i] : row[i] + gap);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gpusched::ctl
