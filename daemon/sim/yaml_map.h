// A map of a YAML file whose keys are each asked for by name; what nobody asked for is an error.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gpusched/policy/types.h"
#include "gpusched/units.h"
#include "sim/fixed_point.h"

namespace gpusched::sim {

// Everything that is wrong with a file, in the order found: "FILE:LINE: what".
class Complaints {
 public:
  explicit Complaints(std::string file) : file_(std::move(file)) {}
  void Add(const YAML::Node& where, const std::string& what) { Add(where.Mark().line + 1, what); }
  void Add(int line, const std::string& what) {
    if (lines_.size() == kMost) lines_.push_back("... and more");
    if (lines_.size() > kMost) return;
    lines_.push_back(file_ + ":" + std::to_string(line) + ": " + what);
  }
  // Already with its own file and line.
  void AddWhole(const std::string& line) { lines_.push_back(line); }
  bool empty() const { return lines_.empty(); }
  std::string Text() const {
    std::string text;
    for (const std::string& line : lines_) text += (text.empty() ? "" : "\n") + line;
    return text;
  }

 private:
  // A reader mends the first few; the rest is often their echo.
  static constexpr std::size_t kMost = 50;
  std::string file_;
  std::vector<std::string> lines_;
};

class YamlMap {
 public:
  // `what` names it in messages: "a session".
  YamlMap(const YAML::Node& node, std::string what, Complaints& complaints)
      : node_(node), what_(std::move(what)), complaints_(complaints) {
    if (!node_.IsMap()) {
      complaints_.Add(node_, what_ + " must be a map of keys and values");
      return;
    }
    std::set<std::string> seen;
    for (const auto& entry : node_) {
      if (!entry.first.IsScalar()) {
        complaints_.Add(entry.first, what_ + " has a key that is no word");
      } else if (!seen.insert(entry.first.Scalar()).second) {
        complaints_.Add(entry.first, "'" + entry.first.Scalar() + "' is there twice");
      }
    }
  }

  int line() const { return node_.Mark().line + 1; }
  bool Has(const std::string& key) const { return node_.IsMap() && node_[key].IsDefined(); }
  // Undefined if it is not there.
  YAML::Node Child(const std::string& key) {
    asked_.insert(key);
    return Has(key) ? node_[key] : YAML::Node(YAML::NodeType::Undefined);
  }
  void Wrong(const std::string& key, const std::string& what) {
    complaints_.Add(node_[key], "'" + key + "' " + what);
  }

  std::string Text(const std::string& key, const std::string& preset) {
    const YAML::Node value = Child(key);
    if (!value.IsDefined()) return preset;
    if (value.IsScalar() && !value.Scalar().empty()) return value.Scalar();
    Wrong(key, "must be a text");
    return preset;
  }
  Duration Time(const std::string& key, Duration preset, Duration least, Duration greatest) {
    const YAML::Node value = Child(key);
    if (!value.IsDefined()) return preset;
    const auto parsed = value.IsScalar() ? ParseDuration(value.Scalar()) : std::nullopt;
    if (!parsed) {
      Wrong(key, "is '" + Shown(value) + "', not a time such as 1.5ms or 10s");
      return preset;
    }
    if (*parsed < least || *parsed > greatest) {
      Wrong(key, "is " + Shown(value) + "; it must be " + FormatDuration(least) + " to " +
                     FormatDuration(greatest));
      return preset;
    }
    return *parsed;
  }
  std::uint64_t Bytes(const std::string& key, std::uint64_t preset) {
    const YAML::Node value = Child(key);
    if (!value.IsDefined()) return preset;
    const auto parsed = value.IsScalar() ? ParseBytes(value.Scalar()) : std::nullopt;
    if (!parsed) Wrong(key, "is '" + Shown(value) + "', not a size such as 512MiB");
    return parsed.value_or(preset);
  }
  std::int64_t Integer(const std::string& key, std::int64_t preset, std::int64_t least,
                       std::int64_t greatest) {
    return Decimal(key, 1, preset, least, greatest);
  }
  // Times `scale`, which the range is in too; "20%" is 0.2.
  std::int64_t Decimal(const std::string& key, std::int64_t scale, std::int64_t preset,
                       std::int64_t least, std::int64_t greatest) {
    const YAML::Node value = Child(key);
    if (!value.IsDefined()) return preset;
    std::string text = value.IsScalar() ? value.Scalar() : "";
    const bool percent = scale > 1 && text.ends_with('%');
    if (percent) text.pop_back();
    const bool whole = scale > 1 || text.find('.') == std::string::npos;
    const auto parsed = whole ? ParseDecimal(text, percent ? scale / 100 : scale) : std::nullopt;
    if (!parsed || *parsed < least || *parsed > greatest) {
      Wrong(key, "is '" + Shown(value) + "'; it must be a " +
                     (scale == 1 ? "whole number" : "number") + ", " + Unscaled(least, scale) +
                     " to " + Unscaled(greatest, scale));
      return preset;
    }
    return *parsed;
  }
  bool Flag(const std::string& key, bool preset) {
    const YAML::Node value = Child(key);
    if (!value.IsDefined()) return preset;
    const std::string text = value.IsScalar() ? value.Scalar() : "";
    if (text == "yes" || text == "true") return true;
    if (text == "no" || text == "false") return false;
    Wrong(key, "is '" + Shown(value) + "'; it must be yes or no");
    return preset;
  }

  // Call last.
  void RefuseTheRest() {
    if (!node_.IsMap()) return;
    for (const auto& entry : node_) {
      if (!entry.first.IsScalar() || asked_.contains(entry.first.Scalar())) continue;
      std::string known;
      for (const std::string& key : asked_) known += (known.empty() ? "" : ", ") + key;
      complaints_.Add(entry.first, "unknown key '" + entry.first.Scalar() + "' in " + what_ +
                                       "; known are " + known);
    }
  }

 private:
  static std::string Shown(const YAML::Node& value) {
    return value.IsScalar() ? value.Scalar().substr(0, 40) : "a list or map";
  }
  static std::string Unscaled(std::int64_t value, std::int64_t scale) {
    std::string text = std::to_string(value / scale);
    std::int64_t rest = value % scale;
    if (rest == 0) return text;
    std::string digits;
    for (std::int64_t unit = scale; rest != 0 && digits.size() < 6; rest %= unit) {
      unit /= 10;
      digits += static_cast<char>('0' + rest / unit);
    }
    return text + "." + digits;
  }

  YAML::Node node_;
  std::string what_;
  Complaints& complaints_;
  std::set<std::string> asked_;
};

}  // namespace gpusched::sim
