// The daemon's log: one line per thing an operator will want to find again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gpusched/policy/types.h"
#include "gpusched/status.h"

namespace gpusched::telemetry {

// "debug", "info", "warning" or "error"; `file` "": standard error. Once, before the first line.
Status OpenLog(std::string_view level, const std::string& file);
// May change while everything runs.
Status SetLevel(std::string_view level);

// Any thread.
void Debug(std::string_view line);
void Info(std::string_view line);
void Warning(std::string_view line);
void Error(std::string_view line);

// Lines that a client can cause as often as it likes: a burst of kBurst, then kPerSecond; the first
// line after a silence says how many were left out. Any thread; `now` is the caller's clock
// reading.
class RateLimit {
 public:
  explicit RateLimit(std::string_view what) : what_(what) {}
  void Warning(Time now, std::string_view line);
  static constexpr int kBurst = 20;
  static constexpr int kPerSecond = 2;

 private:
  const std::string_view what_;
  Time refilled_{};
  int tokens_ = kBurst;
  std::uint64_t left_out_ = 0;
};

}  // namespace gpusched::telemetry
