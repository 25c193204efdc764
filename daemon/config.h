// The daemon's configuration: one versioned YAML document, read whole or not at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/limits.h"
#include "executor/limits.h"
#include "gpusched/policy/params.h"
#include "gpusched/policy/types.h"

namespace gpusched::daemon {

struct Config {
  struct Listen {
    std::vector<std::string> endpoints = {"unix:/run/gpusched/gpusched.sock"};
    bool insecure = false;
  } listen;
  struct Admin {
    std::string endpoint = "unix:/run/gpusched/admin.sock";
    std::string group;
  } admin;
  struct Device {
    std::string kind = "auto";
    std::string select;
    int count = 1;
    std::string costs;
    std::uint64_t memory = 0;
    Duration preemption_bound = std::chrono::milliseconds(1);
    std::string cache_dir = "/var/cache/gpusched";
    int spare_units = 0;
    bool priority_streams = true;
    int in_flight = static_cast<int>(core::Limits{}.commands_in_flight);
  } device;
  struct Policy {
    std::string kind = "round_robin";
    ParameterText parameters;
    std::string canonical;  // filled in by Read
  } policy;
  executor::SessionLimits sessions;
  Duration drain_timeout = std::chrono::seconds(10);
  struct Log {
    std::string level = "info";
    std::string file;
  } log;
};

struct ConfigFault {
  std::string key, message;
  int line = 0, column = 0;  // 1-based; 0: no position
};

// What the command line says instead of the document.
struct Overrides {
  std::vector<std::string> endpoints;
  std::optional<std::string> device, costs, admin, policy, preemption_bound, log_level;
  std::optional<int> devices;
};

struct ReadConfig {
  Config config;
  std::vector<ConfigFault> faults;  // empty: the configuration is valid
};
// All faults at once, in the order of the document. An empty document is a fault, as half a file
// is; no document (nothing) is all defaults.
ReadConfig Read(const std::optional<std::string>& text, const Overrides& overrides);

// Keys that differ and take effect only at the next start.
std::vector<std::string> NeedsRestart(const Config& running, const Config& next);

// The table of all keys with range, default, meaning and whether they change live, for
// --help-config.
std::string KeyTable();

std::string Text(const ConfigFault& fault);

}  // namespace gpusched::daemon
