// One line in memory at a time, so that the size of a file does not matter.
#include "sim/csv_file.h"

#include <filesystem>

#include "gpusched/reasons.h"
#include "sim/fixed_point.h"

namespace gpusched::sim {
namespace {

// No row of ours comes near; a file that is no table at all is told by it.
constexpr std::size_t kLongestLine = 64 * 1024;

void Split(std::string_view line, std::vector<std::string>& fields) {
  fields.clear();
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.emplace_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

// "12.5" of 12500 in thousandths.
std::string Unscaled(std::int64_t value, std::int64_t scale) {
  std::string text = std::to_string(value / scale);
  if (value % scale != 0) text += " and a fraction";
  return text;
}

}  // namespace

Status WrongAt(const std::string& file, std::uint64_t line, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration,
                file + ":" + std::to_string(line) + ": " + what);
}

Result<CsvFile> CsvFile::Open(const std::string& path, std::string_view header) {
  CsvFile file;
  file.path_ = path;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return WrongAt(path, 0, "there is no such file");
  }
  file.stream_.open(path);
  if (!file.stream_) return WrongAt(path, 0, "cannot be read; check its permissions");
  std::string line;
  const Result<bool> read = file.ReadLine(line);
  if (!read.ok()) return read.status();
  if (!*read) return WrongAt(path, 1, "the file is empty");
  if (!header.empty() && line != header) {
    return file.Wrong("begins with '" + line.substr(0, 80) + "', not with '" + std::string(header) +
                      "'");
  }
  Split(line, file.names_);
  return file;
}

Result<std::string> CsvFile::HeaderOf(const std::string& path) {
  Result<CsvFile> file = Open(path, "");
  if (!file.ok()) return file.status();
  std::string header;
  for (const std::string& name : file->names_) header += (header.empty() ? "" : ",") + name;
  if (file->names_.front().empty()) header = "," + header;
  return header;
}

Result<bool> CsvFile::ReadLine(std::string& line) {
  line.clear();
  ++line_;
  std::streambuf& bytes = *stream_.rdbuf();
  for (int c = bytes.sbumpc(); c != std::char_traits<char>::eof(); c = bytes.sbumpc()) {
    if (c == '\n') {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return true;
    }
    if (c == '\0') return Wrong("holds a zero byte; it is no text");
    line.push_back(static_cast<char>(c));
    if (line.size() > kLongestLine) {
      return Wrong("is longer than " + std::to_string(kLongestLine) + " characters");
    }
  }
  if (!line.empty()) return Wrong("ends without a line end; the file may be cut off");
  return false;
}

Result<bool> CsvFile::Next() {
  std::string line;
  Result<bool> read = ReadLine(line);
  if (!read.ok() || !*read) return read;
  Split(line, fields_);
  if (fields_.size() != names_.size()) {
    return Wrong("has " + std::to_string(fields_.size()) + " fields where the header has " +
                 std::to_string(names_.size()));
  }
  return true;
}

Result<std::int64_t> CsvFile::Number(std::size_t column, std::int64_t scale, std::int64_t least,
                                     std::int64_t greatest) const {
  const std::optional<std::int64_t> value = ParseDecimal(fields_[column], scale);
  if (!value) {
    return Wrong("'" + fields_[column].substr(0, 40) + "' in column " + names_[column] +
                 " is no number that fits");
  }
  if (*value < least || *value > greatest) {
    return Wrong(fields_[column].substr(0, 40) + " in column " + names_[column] +
                 " is out of range; it must be " + Unscaled(least, scale) + " to " +
                 Unscaled(greatest, scale));
  }
  return *value;
}

}  // namespace gpusched::sim
