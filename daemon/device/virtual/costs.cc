// Reads the cost file: one table of keys, each with its parser and range.
#include "device/virtual/costs.h"

#include <yaml-cpp/yaml.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "gpusched/reasons.h"
#include "gpusched/units.h"

namespace gpusched::device {
namespace {

constexpr Duration kLargestCost = std::chrono::seconds(1);  // a cost beyond it is a typing error
// Noise is bounded at three standard deviations; a third would let a command take no time at all.
constexpr std::int64_t kLargestNoise = 300'000'000;
constexpr std::int64_t kBillion = 1'000'000'000;
constexpr std::int64_t kLargestFactor = 1'000;

// "0.05" -> 50,000,000, exactly; nothing if it is no plain decimal fraction of at most nine places.
std::optional<std::int64_t> ParseFraction(std::string_view text) {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view places =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  if (whole.empty() || whole.size() > 3 || places.size() > 9) return std::nullopt;
  std::string digits = std::string(whole) + std::string(places);
  digits.append(9 - places.size(), '0');
  std::int64_t value = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    value = value * 10 + (digit - '0');
  }
  return value;
}

bool ReadCost(const std::string& text, Duration& cost) {
  const auto parsed = ParseDuration(text);
  if (parsed && *parsed <= kLargestCost) cost = *parsed;
  return parsed && *parsed <= kLargestCost;
}

bool ReadFraction(const std::string& text, std::int64_t largest, std::int64_t& ppb) {
  const auto parsed = ParseFraction(text);
  if (parsed && *parsed <= largest) ppb = *parsed;
  return parsed && *parsed <= largest;
}

template <typename Integer>
bool ReadInteger(const std::string& text, Integer least, Integer greatest, Integer& value) {
  Integer parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  const bool good = error == std::errc() && end == text.data() + text.size() && parsed >= least &&
                    parsed <= greatest;
  if (good) value = parsed;
  return good;
}

bool ReadBandwidth(const std::string& text, std::uint64_t& bandwidth) {
  const auto parsed = ParseBytes(text);
  if (parsed) bandwidth = *parsed;
  return parsed.has_value();
}

struct Key {
  std::string_view name;
  std::string_view wants;
  bool (*read)(const std::string&, Costs&);
};

constexpr std::array<Key, 8> kKeys{{
    {"launch_gap", "a duration up to 1s such as 8us",
     [](const std::string& text, Costs& costs) { return ReadCost(text, costs.launch_gap); }},
    {"chunk", "a duration up to 1s such as 20us",
     [](const std::string& text, Costs& costs) { return ReadCost(text, costs.chunk); }},
    {"switch", "a duration up to 1s such as 20us",
     [](const std::string& text, Costs& costs) { return ReadCost(text, costs.session_switch); }},
    {"noise", "a fraction from 0 to 0.3 such as 0.05",
     [](const std::string& text, Costs& costs) {
       return ReadFraction(text, kLargestNoise, costs.noise_ppb);
     }},
    {"outlier_probability", "a fraction from 0 to 1 such as 0.0001",
     [](const std::string& text, Costs& costs) {
       return ReadFraction(text, kBillion, costs.outlier_ppb);
     }},
    {"outlier_factor", "a whole number from 1 to 1000",
     [](const std::string& text, Costs& costs) {
       return ReadInteger<std::int64_t>(text, 1, kLargestFactor, costs.outlier_factor);
     }},
    {"copy_bandwidth", "bytes per second such as 12GB, 0 for copies that take no time",
     [](const std::string& text, Costs& costs) {
       return ReadBandwidth(text, costs.copy_bandwidth);
     }},
    {"seed", "a whole number of at least 0",
     [](const std::string& text, Costs& costs) {
       return ReadInteger<std::uint64_t>(text, 0, UINT64_MAX, costs.seed);
     }},
}};

// Collects what is wrong, with the place.
class Complaints {
 public:
  explicit Complaints(const std::string& file) : file_(file) {}
  void Add(const YAML::Mark& mark, const std::string& what) {
    if (!text_.empty()) text_ += "; ";
    text_ += file_;
    if (!mark.is_null()) {
      text_ += ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
    }
    text_ += ": " + what;
  }
  bool none() const { return text_.empty(); }
  Status AsStatus() const {
    return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration, text_);
  }

 private:
  std::string file_;
  std::string text_;
};

const Key* FindKey(std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::string KeyNames() {
  std::string names;
  for (const Key& key : kKeys) names += (names.empty() ? "" : ", ") + std::string(key.name);
  return names;
}

void ReadEntry(const YAML::Node& name, const YAML::Node& value, Costs& costs,
               Complaints& complaints) {
  const Key* key = name.IsScalar() ? FindKey(name.Scalar()) : nullptr;
  if (key == nullptr) {
    complaints.Add(name.Mark(), "unknown key '" + (name.IsScalar() ? name.Scalar() : "?") +
                                    "'; a cost file has " + KeyNames());
  } else if (!value.IsScalar() || !key->read(value.Scalar(), costs)) {
    complaints.Add(value.Mark(), "'" + name.Scalar() + "' must be " + std::string(key->wants));
  }
}

}  // namespace

Result<Costs> ParseCosts(const std::string& text, const std::string& name) {
  Costs costs;
  Complaints complaints(name);
  try {
    const YAML::Node root = YAML::Load(text);
    if (root.IsMap()) {
      for (const auto& entry : root) ReadEntry(entry.first, entry.second, costs, complaints);
    } else if (!root.IsNull()) {
      complaints.Add(root.Mark(), "a cost file is a map of " + KeyNames());
    }
  } catch (const YAML::Exception& broken) {
    complaints.Add(broken.mark, broken.msg);
  }
  if (!complaints.none()) return complaints.AsStatus();
  return costs;
}

Result<Costs> LoadCosts(const std::string& path) {
  if (path.empty()) return Costs{};
  std::error_code ignored;
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || std::filesystem::is_directory(path, ignored)) {
    return Status(
        StatusCode::kInvalidArgument, reason::kBadConfiguration,
        "cannot read the cost file '" + path + "'; give a readable file, or none for the defaults");
  }
  return ParseCosts(text.str(), path);
}

}  // namespace gpusched::device
