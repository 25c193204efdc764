// A policy's parameters: typed, with range, default and meaning; read from text with all errors at
// once.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/policy/types.h"

namespace gpusched {

// One thing that is wrong, and what would be right.
struct FieldError {
  std::string field;  // the parameter's name as it was given; "" if it is about the whole
  std::string message;
};

enum class ParameterType : std::uint8_t {
  kDuration,  // "1.5ms"; nanoseconds
  kFraction,  // "5%" or "0.05"; parts per billion
  kInteger,   // "12"
};

// A row of a policy's table of parameters. Values are in the type's unit.
struct ParameterSpec {
  std::string_view name;
  ParameterType type = ParameterType::kDuration;
  std::int64_t least = 0, greatest = 0, preset = 0;  // range, both ends included; default
  std::string_view meaning;                          // one sentence

  static constexpr ParameterSpec OfDuration(std::string_view name, Duration least,
                                            Duration greatest, Duration preset,
                                            std::string_view meaning) {
    return {name,   ParameterType::kDuration, least.count(), greatest.count(), preset.count(),
            meaning};
  }
  static constexpr ParameterSpec OfFraction(std::string_view name, Rate least, Rate greatest,
                                            Rate preset, std::string_view meaning) {
    return {name, ParameterType::kFraction, least, greatest, preset, meaning};
  }
  static constexpr ParameterSpec OfInteger(std::string_view name, std::int64_t least,
                                           std::int64_t greatest, std::int64_t preset,
                                           std::string_view meaning) {
    return {name, ParameterType::kInteger, least, greatest, preset, meaning};
  }

  std::string Format(std::int64_t value) const;  // the shortest text that reads back as the value
  std::string Range() const;                     // "100us to 1s"
  std::string Default() const { return Format(preset); }
};

using ParameterText = std::map<std::string, std::string>;

// The parameters of one policy, each with a value in its range. Asking for a name that is not in
// the table, or for another type than the table's, is a programming error and ends the process.
class Parameters {
 public:
  // All at their defaults.
  explicit Parameters(std::span<const ParameterSpec> table);

  // Takes what is given, leaves the rest at the defaults, and appends everything that is wrong.
  static Parameters Parse(std::span<const ParameterSpec> table, const ParameterText& given,
                          std::vector<FieldError>& errors);

  Duration duration(std::string_view name) const;
  Rate fraction(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;

  ParameterText Text() const;     // all of them, defaults included
  std::string Canonical() const;  // "slice=1ms,window=100ms", in the table's order

 private:
  std::int64_t Value(std::string_view name, ParameterType type) const;

  std::span<const ParameterSpec> table_;  // outlives us: tables are constants
  std::vector<std::int64_t> values_;      // by row
};

// Splits "k=v,k=v" (what Canonical writes, and what an operator types); appends what is malformed
// or given twice.
ParameterText SplitParameters(std::string_view text, std::vector<FieldError>& errors);

}  // namespace gpusched
