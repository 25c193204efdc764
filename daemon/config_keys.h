// The one table of configuration keys: name, meaning, how each is read and shown.
#pragma once

#include <yaml-cpp/yaml.h>

#include <span>
#include <string>
#include <string_view>

#include "config.h"

namespace gpusched::daemon {

struct ConfigKey {
  std::string_view name;  // "device.count"
  bool live = false;      // takes effect at once
  std::string_view range;
  std::string_view meaning;
  // What is wrong with the value, "" if nothing.
  std::string (*read)(const YAML::Node& value, Config& config);
  std::string (*show)(const Config& config);
};

std::span<const ConfigKey> ConfigKeys();

}  // namespace gpusched::daemon
