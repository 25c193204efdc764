// Lines to tests; values to bytes; bytes beside bytes.
#include "support/piglit_file.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

namespace gpusched::test {
namespace {

constexpr std::uint64_t kMostBytes = 16 << 20;
constexpr std::size_t kMostArguments = 64;

Status Unsupported(const std::string& what) {
  return Status(StatusCode::kUnimplemented, "PIGLIT_UNSUPPORTED", what);
}

std::string Trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<PiglitType> TypeNamed(const std::string& name) {
  using Base = PiglitType::Base;
  static const std::map<std::string, std::pair<Base, std::uint32_t>> kTypes{
      {"char", {Base::kSigned, 1}},    {"uchar", {Base::kUnsigned, 1}},
      {"short", {Base::kSigned, 2}},   {"ushort", {Base::kUnsigned, 2}},
      {"int", {Base::kSigned, 4}},     {"uint", {Base::kUnsigned, 4}},
      {"long", {Base::kSigned, 8}},    {"ulong", {Base::kUnsigned, 8}},
      {"float", {Base::kFloating, 4}}, {"double", {Base::kFloating, 8}}};
  const std::size_t digits = std::min(name.find_first_of("0123456789"), name.size());
  const auto found = kTypes.find(name.substr(0, digits));
  if (found == kTypes.end()) return std::nullopt;
  PiglitType type{.base = found->second.first, .bytes = found->second.second};
  if (digits < name.size()) {
    type.width = static_cast<std::uint32_t>(std::strtoul(name.c_str() + digits, nullptr, 10));
    if (type.width < 1 || type.width > 16) return std::nullopt;
  }
  type.stride = type.width == 3 ? 4 : type.width;
  return type;
}

// The bytes of one number; nothing if it is none.
std::optional<std::vector<std::uint8_t>> Element(const PiglitType& type, const std::string& word) {
  std::vector<std::uint8_t> bytes(type.bytes);
  char* end = nullptr;
  if (type.base == PiglitType::Base::kFloating) {
    const double number = std::strtod(word.c_str(), &end);
    const auto narrow = static_cast<float>(number);
    std::memcpy(bytes.data(), type.bytes == 4 ? static_cast<const void*>(&narrow) : &number,
                type.bytes);
  } else {
    const unsigned long long number =
        word[0] == '-' ? static_cast<unsigned long long>(std::strtoll(word.c_str(), &end, 0))
                       : std::strtoull(word.c_str(), &end, 0);
    std::memcpy(bytes.data(), &number, type.bytes);  // the low bytes come first
  }
  if (end == word.c_str()) return std::nullopt;
  return bytes;
}

double Number(const PiglitType& type, const std::uint8_t* at) {
  const auto as = [at]<typename T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  };
  switch (type.base) {
    case PiglitType::Base::kFloating: return type.bytes == 4 ? as(float{}) : as(double{});
    case PiglitType::Base::kSigned:
      return type.bytes == 1   ? as(std::int8_t{})
             : type.bytes == 2 ? as(std::int16_t{})
             : type.bytes == 4 ? as(std::int32_t{})
                               : as(std::int64_t{});
    case PiglitType::Base::kUnsigned:
      return type.bytes == 1   ? as(std::uint8_t{})
             : type.bytes == 2 ? as(std::uint16_t{})
             : type.bytes == 4 ? as(std::uint32_t{})
                               : as(std::uint64_t{});
  }
  return 0;
}

// The distance to the next number of the type.
double UlpOf(const PiglitType& type, double number) {
  if (type.bytes == 8) return std::nextafter(std::abs(number), INFINITY) - std::abs(number);
  const auto narrow = std::abs(static_cast<float>(number));
  return std::nextafter(narrow, INFINITY) - narrow;
}

// "0 buffer int4[2] repeat 1 2 tolerance 1 ulp", word by word.
class ArgumentReader {
 public:
  explicit ArgumentReader(const std::string& text) : words_(text) {}

  Status Read(PiglitTest& test, bool out) {
    std::size_t index = 0;
    std::string word;
    if (!(words_ >> index >> word) || index >= kMostArguments) return Unsupported("an index");
    const bool buffer = word == "buffer";
    if (buffer) words_ >> word;
    std::uint64_t count = 1;
    if (const std::size_t open = word.find('['); open != word.npos) {
      count = std::strtoull(word.c_str() + open + 1, nullptr, 10);
      word.resize(open);
    }
    const std::optional<PiglitType> type = TypeNamed(word);
    if (!type) return Unsupported("an argument of type " + word);
    if (count == 0 || count > kMostBytes / (std::uint64_t{type->bytes} * type->stride)) {
      return Unsupported("a buffer of " + std::to_string(count));
    }
    if (test.arguments.size() <= index) test.arguments.resize(index + 1);
    PiglitArgument& argument = test.arguments[index];
    argument.type = *type;
    argument.kind = buffer ? PiglitArgument::Kind::kBuffer : PiglitArgument::Kind::kValue;
    return ReadValues(argument, count, out);
  }

 private:
  Status ReadValues(PiglitArgument& argument, std::uint64_t count, bool out) {
    std::vector<std::vector<std::uint8_t>> numbers;
    bool repeats = false;
    for (std::string word; words_ >> word;) {
      if (word == "NULL") {
        argument.kind = PiglitArgument::Kind::kLocal;
      } else if (word == "repeat") {
        repeats = true;
      } else if (word == "tolerance") {
        words_ >> argument.tolerance >> word;
        argument.tolerance_is_ulp = word == "ulp";
        break;
      } else if (auto number = Element(argument.type, word)) {
        numbers.push_back(*std::move(number));
      } else {
        return Unsupported("a value '" + word + "'");
      }
    }
    const PiglitType& type = argument.type;
    const bool local = argument.kind == PiglitArgument::Kind::kLocal;
    if (!local && numbers.size() != count * type.width && !(repeats && !numbers.empty())) {
      return Unsupported("a list of another length than its type");
    }
    std::vector<std::uint8_t> bytes(count * type.stride * type.bytes);
    for (std::uint64_t i = 0; !local && i < count * type.width; ++i) {
      const std::uint64_t place = i / type.width * type.stride + i % type.width;
      const auto& number = numbers[i % numbers.size()];
      std::copy(number.begin(), number.end(), bytes.begin() + place * type.bytes);
    }
    if (argument.in.empty()) argument.in.resize(bytes.size());
    (out ? argument.out : argument.in) = std::move(bytes);
    const bool agree = argument.out.empty() || argument.out.size() == argument.in.size();
    return agree ? Status::Ok() : Unsupported("a buffer of two sizes");
  }

  std::istringstream words_;
};

class Parser {
 public:
  Result<PiglitFile> Parse(const std::string& text) {
    const std::size_t begin = text.find("/*!"), end = text.find("*/");
    if (begin == text.npos || end == text.npos || end < begin) {
      return Unsupported("no comment that begins with /*!");
    }
    file_.source = text;
    std::istringstream lines(text.substr(begin + 3, end - begin - 3));
    for (std::string line, more; std::getline(lines, line);) {
      line = Trimmed(line);
      while (!line.empty() && line.back() == '\\' && std::getline(lines, more)) {
        line.back() = ' ';
        line += Trimmed(more);
      }
      if (line.empty() || line[0] == '#' || line == "!") continue;
      if (Status status = Take(line); !status.ok()) return status;
    }
    EndTest();
    for (const PiglitTest& test : file_.tests) {
      if (test.kernel.empty()) return Unsupported("a test without a kernel");
    }
    if (file_.tests.empty()) return Unsupported("no test");
    return std::move(file_);
  }

 private:
  Status Take(const std::string& line) {
    if (line == "[config]") return Status::Ok();
    if (line == "[test]") {
      EndTest();
      in_test_ = true;
      test_ = config_;
      return Status::Ok();
    }
    const std::size_t colon = line.find(':');
    if (colon == line.npos) return Unsupported("a line '" + line + "'");
    return Entry(Trimmed(line.substr(0, colon)), Trimmed(line.substr(colon + 1)));
  }

  void EndTest() {
    if (in_test_) file_.tests.push_back(std::move(test_));
    in_test_ = false;
  }

  Status Entry(const std::string& key, const std::string& value) {
    static const std::vector<std::string> kIgnored{
        "name",           "clc_version_min", "clc_version_max",
        "cl_version_min", "cl_version_max",  "require_device_extensions"};
    PiglitTest& test = in_test_ ? test_ : config_;
    if (key == "name") test.name = value;
    if (std::find(kIgnored.begin(), kIgnored.end(), key) != kIgnored.end()) return Status::Ok();
    std::istringstream words(value);
    if (key == "kernel_name") {
      test.kernel = value;
    } else if (key == "dimensions") {
      words >> test.dimensions;
    } else if (key == "global_size" || key == "local_size") {
      auto& sizes = key == "global_size" ? test.global : test.local;
      for (std::uint32_t& size : sizes) words >> size;
    } else if (key == "arg_in" || key == "arg_out") {
      return ArgumentReader(value).Read(test, key == "arg_out");
    } else {
      return Unsupported("an entry '" + key + "'");
    }
    return Status::Ok();
  }

  PiglitFile file_;
  PiglitTest config_, test_;
  bool in_test_ = false;
};

}  // namespace

bool PiglitArgument::Accepts(const std::vector<std::uint8_t>& got) const {
  if (out.empty()) return true;
  if (got.size() != out.size()) return false;
  for (std::size_t element = 0; element * type.bytes < out.size(); ++element) {
    if (element % type.stride >= type.width) continue;  // the room behind a vector of 3
    const std::uint8_t* expected_at = out.data() + element * type.bytes;
    const std::uint8_t* got_at = got.data() + element * type.bytes;
    if (std::memcmp(expected_at, got_at, type.bytes) == 0) continue;
    const double expected = Number(type, expected_at), number = Number(type, got_at);
    if (type.base == PiglitType::Base::kFloating) {
      if (expected == number || (std::isnan(expected) && std::isnan(number))) continue;
    }
    const double most = tolerance_is_ulp ? tolerance * UlpOf(type, expected) : tolerance;
    if (!(std::abs(expected - number) <= most) || most == 0) return false;
  }
  return true;
}

Result<PiglitFile> ParsePiglit(const std::string& text) { return Parser().Parse(text); }

Result<PiglitFile> ReadPiglitFile(const std::string& path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && text.empty()) {
    return Status(StatusCode::kNotFound, "PIGLIT_UNREADABLE", "cannot read " + path);
  }
  return ParsePiglit(text);
}

}  // namespace gpusched::test
