// Durations and byte counts as people write them: "1.5ms", "10m", "2GiB"; exact, without floating
// point.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace gpusched {

namespace units_internal {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

// "12.5" + unit -> 12.5 x factor, rounded towards zero; nothing if malformed, negative or too
// large.
template <std::size_t N>
std::optional<std::int64_t> Parse(std::string_view text, const std::array<Unit, N>& table) {
  __extension__ using Wide = __int128;
  std::size_t i = 0;
  Wide number = 0, scale = 1;
  bool digits = false, point = false;
  for (; i < text.size() && ((text[i] >= '0' && text[i] <= '9') || (text[i] == '.' && !point));
       ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    digits = true;
    if (point && scale >= 1'000'000'000'000) continue;  // finer than any unit
    number = number * 10 + (text[i] - '0');
    if (point) scale *= 10;
    if (number > (Wide{1} << 90)) return std::nullopt;
  }
  while (i < text.size() && text[i] == ' ') ++i;
  if (!digits) return std::nullopt;
  const std::string_view name = text.substr(i);
  for (const Unit& unit : table) {
    if (unit.name != name) continue;
    const Wide value = number * unit.factor / scale;
    if (value > INT64_MAX) return std::nullopt;
    return static_cast<std::int64_t>(value);
  }
  return std::nullopt;
}

}  // namespace units_internal

// "250ns", "8us", "1.5ms", "10s", "10m", "2h"; a bare "0" too.
inline std::optional<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  static constexpr std::array<units_internal::Unit, 6> kUnits{{{"ns", 1},
                                                               {"us", 1'000},
                                                               {"ms", 1'000'000},
                                                               {"s", 1'000'000'000},
                                                               {"m", 60'000'000'000},
                                                               {"h", 3'600'000'000'000}}};
  if (text == "0") return std::chrono::nanoseconds(0);
  const auto value = units_internal::Parse(text, kUnits);
  if (!value) return std::nullopt;
  return std::chrono::nanoseconds(*value);
}

// "4096", "64KiB", "2GiB", "1.5GB".
inline std::optional<std::uint64_t> ParseBytes(std::string_view text) {
  static constexpr std::array<units_internal::Unit, 10> kUnits{{{"", 1},
                                                                {"B", 1},
                                                                {"KiB", 1 << 10},
                                                                {"MiB", 1 << 20},
                                                                {"GiB", 1 << 30},
                                                                {"TiB", std::int64_t{1} << 40},
                                                                {"KB", 1'000},
                                                                {"MB", 1'000'000},
                                                                {"GB", 1'000'000'000},
                                                                {"TB", 1'000'000'000'000}}};
  const auto value = units_internal::Parse(text, kUnits);
  if (!value) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

// The largest unit in which the value is at least 1, with up to three decimals and no trailing
// zeros: "1.5ms". ParseDuration reads it back, to a thousandth of the unit.
inline std::string FormatDuration(std::chrono::nanoseconds duration) {
  std::int64_t ns = duration.count();
  const std::string sign = ns < 0 ? "-" : "";
  if (ns == INT64_MAX) return "never";
  if (ns < 0) ns = -ns;
  struct Unit {
    const char* name;
    std::int64_t factor;
  };
  static constexpr Unit kUnits[] = {
      {"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}};
  for (const Unit& unit : kUnits) {
    if (ns < unit.factor) continue;
    const std::int64_t thousandths = ns % unit.factor * 1'000 / unit.factor;
    std::string text = std::to_string(ns / unit.factor);
    if (thousandths != 0) {
      char digits[8];
      std::snprintf(digits, sizeof digits, ".%03d", static_cast<int>(thousandths));
      text += digits;
      while (text.back() == '0') text.pop_back();
    }
    return sign + text + unit.name;
  }
  return "0";
}

// "512B", "1.5GiB".
inline std::string FormatBytes(std::uint64_t bytes) {
  static constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  std::uint64_t scale = 1;
  while (unit < 4 && bytes / scale >= 1'024) {
    scale *= 1'024;
    ++unit;
  }
  std::string text = std::to_string(bytes / scale);
  const std::uint64_t tenths = bytes % scale * 10 / scale;
  if (tenths != 0) text += "." + std::to_string(tenths);
  return text + kNames[unit];
}

}  // namespace gpusched
