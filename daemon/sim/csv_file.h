// Reads a table of commas and lines, a row at a time; everything that is wrong is said with file
// and line.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::sim {

// BAD_CONFIGURATION with "FILE:LINE: what".
Status WrongAt(const std::string& file, std::uint64_t line, const std::string& what);

class CsvFile {
 public:
  // `header` must be the first line. It is the caller who says what a row of it means.
  static Result<CsvFile> Open(const std::string& path, std::string_view header);
  // The first line of a file, to tell its kind by.
  static Result<std::string> HeaderOf(const std::string& path);

  // The next row; false: there is none. A row with another number of fields than the header is an
  // error, as is a file that ends in the middle of a line.
  Result<bool> Next();

  const std::string& operator[](std::size_t column) const { return fields_[column]; }
  std::uint64_t line() const { return line_; }
  Status Wrong(const std::string& what) const { return WrongAt(path_, line_, what); }

  // The number in a column, times `scale` and rounded towards zero: within [least, greatest] of the
  // result, or an error that says what it must be.
  Result<std::int64_t> Number(std::size_t column, std::int64_t scale, std::int64_t least,
                              std::int64_t greatest) const;

 private:
  CsvFile() = default;
  Result<bool> ReadLine(std::string& line);

  std::string path_;
  std::ifstream stream_;
  std::uint64_t line_ = 0;
  std::vector<std::string> names_, fields_;
};

}  // namespace gpusched::sim
