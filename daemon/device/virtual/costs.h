// What running a command costs on the virtual device: the figures, and the file they come from.
#pragma once

#include <cstdint>
#include <string>

#include "gpusched/policy/types.h"
#include "gpusched/status.h"

namespace gpusched::device {

// The defaults are those of costs/default.yaml, where their sources stand.
struct Costs {
  Duration launch_gap{8'000};  // every command: from the end of the one before to its first block
  Duration chunk{20'000};      // every chunk of a launch that was cut
  Duration session_switch{20'000};      // when the session differs from that of the command before
  std::int64_t noise_ppb = 50'000'000;  // standard deviation of a command's work, parts per billion
  std::int64_t outlier_ppb = 100'000;  // how many commands in a billion take outlier_factor as long
  std::int64_t outlier_factor = 10;
  std::uint64_t copy_bandwidth = 12'000'000'000;  // bytes per second; 0: copies take no time
  std::uint64_t seed = 1;
  friend bool operator==(const Costs&, const Costs&) = default;
};

// A YAML map with any of the keys launch_gap, chunk, switch, noise, outlier_probability,
// outlier_factor, copy_bandwidth, seed; what is missing keeps its default. All errors at once, each
// with file and line: INVALID_ARGUMENT (BAD_CONFIGURATION). `name` stands for the file in messages.
Result<Costs> ParseCosts(const std::string& text, const std::string& name);
// "" gives the defaults.
Result<Costs> LoadCosts(const std::string& path);

}  // namespace gpusched::device
