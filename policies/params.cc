// Reads and writes policy parameters.
#include "gpusched/policy/params.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "gpusched/units.h"

namespace gpusched {

namespace {

constexpr std::int64_t kPercent = kWholeDevice / 100;

// "1.5ms" where that is exact, else whole nanoseconds.
std::string FormatExactly(Duration value) {
  std::string text = FormatDuration(value);
  if (ParseDuration(text) == value) return text;
  return std::to_string(value.count()) + "ns";
}

// "5%", "0.25%": a part per billion is the seventh decimal of a per cent.
std::string FormatFraction(Rate value) {
  std::string text = std::to_string(value / kPercent);
  if (const Rate rest = value % kPercent; rest != 0) {
    char digits[16];
    std::snprintf(digits, sizeof digits, ".%07d", static_cast<int>(rest));
    text += digits;
    while (text.back() == '0') text.pop_back();
  }
  return text + "%";
}

std::optional<std::int64_t> ParseInteger(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "5%" or "0.05": digits, at most one point, perhaps a per cent sign.
std::optional<Rate> ParseFraction(std::string_view text) {
  std::int64_t scale = kWholeDevice;
  if (text.ends_with('%')) {
    scale = kPercent;
    text.remove_suffix(1);
  }
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view decimals =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  if (whole.size() + decimals.size() == 0 || whole.size() > 9) return std::nullopt;
  Rate value = 0;
  for (const char digit : whole) {
    if (digit < '0' || digit > '9') return std::nullopt;
    value = value * 10 + (digit - '0') * scale;
  }
  for (const char digit : decimals) {
    if (digit < '0' || digit > '9') return std::nullopt;
    scale /= 10;
    value += (digit - '0') * scale;
  }
  return value;
}

std::optional<std::int64_t> ParseValue(ParameterType type, std::string_view text) {
  switch (type) {
    case ParameterType::kDuration: {
      const auto value = ParseDuration(text);
      if (!value) return std::nullopt;
      return value->count();
    }
    case ParameterType::kFraction: return ParseFraction(text);
    case ParameterType::kInteger: return ParseInteger(text);
  }
  return std::nullopt;
}

std::string_view Example(ParameterType type) {
  switch (type) {
    case ParameterType::kDuration: return "a duration such as 500us, 1.5ms or 2s";
    case ParameterType::kFraction: return "a fraction such as 5% or 0.05";
    case ParameterType::kInteger: return "a whole number";
  }
  return "";
}

std::string Names(std::span<const ParameterSpec> table) {
  std::string names;
  for (const ParameterSpec& spec : table) {
    if (!names.empty()) names += ", ";
    names += spec.name;
  }
  return names.empty() ? "none" : names;
}

}  // namespace

std::string ParameterSpec::Format(std::int64_t value) const {
  switch (type) {
    case ParameterType::kDuration: return FormatExactly(Duration(value));
    case ParameterType::kFraction: return FormatFraction(value);
    case ParameterType::kInteger: return std::to_string(value);
  }
  return "";
}

std::string ParameterSpec::Range() const { return Format(least) + " to " + Format(greatest); }

Parameters::Parameters(std::span<const ParameterSpec> table) : table_(table) {
  for (const ParameterSpec& spec : table) values_.push_back(spec.preset);
}

Parameters Parameters::Parse(std::span<const ParameterSpec> table, const ParameterText& given,
                             std::vector<FieldError>& errors) {
  Parameters parameters(table);
  bool listed = false;
  for (const auto& [name, text] : given) {
    std::size_t row = 0;
    while (row < table.size() && table[row].name != name) ++row;
    if (row == table.size()) {
      // Once is enough for all that are unknown.
      errors.push_back({name, listed ? "there is no such parameter"
                                     : "there is no such parameter; there are: " + Names(table)});
      listed = true;
      continue;
    }
    const ParameterSpec& spec = table[row];
    const auto value = ParseValue(spec.type, text);
    if (!value) {
      errors.push_back({name, "'" + text + "' is not " + std::string(Example(spec.type)) +
                                  "; the range is " + spec.Range()});
    } else if (*value < spec.least || *value > spec.greatest) {
      errors.push_back({name, "'" + text + "' is out of range; the range is " + spec.Range()});
    } else {
      parameters.values_[row] = *value;
    }
  }
  return parameters;
}

std::int64_t Parameters::Value(std::string_view name, ParameterType type) const {
  for (std::size_t row = 0; row < table_.size(); ++row) {
    if (table_[row].name == name && table_[row].type == type) return values_[row];
  }
  std::fprintf(stderr, "policy parameter '%.*s' is not in its table, or of another type\n",
               static_cast<int>(name.size()), name.data());
  std::abort();
}

Duration Parameters::duration(std::string_view name) const {
  return Duration(Value(name, ParameterType::kDuration));
}
Rate Parameters::fraction(std::string_view name) const {
  return Value(name, ParameterType::kFraction);
}
std::int64_t Parameters::integer(std::string_view name) const {
  return Value(name, ParameterType::kInteger);
}

ParameterText Parameters::Text() const {
  ParameterText text;
  for (std::size_t row = 0; row < table_.size(); ++row) {
    text.emplace(table_[row].name, table_[row].Format(values_[row]));
  }
  return text;
}

std::string Parameters::Canonical() const {
  std::string text;
  for (std::size_t row = 0; row < table_.size(); ++row) {
    if (row > 0) text += ",";
    text += table_[row].name;
    text += '=';
    text += table_[row].Format(values_[row]);
  }
  return text;
}

ParameterText SplitParameters(std::string_view text, std::vector<FieldError>& errors) {
  ParameterText split;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view pair = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const std::size_t equals = pair.find('=');
    const std::string name(pair.substr(0, equals));
    if (equals == std::string_view::npos || equals == 0) {
      errors.push_back({name, std::string(pair) + " is not of the form name=value"});
    } else if (!split.emplace(name, pair.substr(equals + 1)).second) {
      errors.push_back({name, "is given twice"});
    }
  }
  return split;
}

}  // namespace gpusched
