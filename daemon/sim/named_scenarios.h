// The scenarios that come with the simulator; their texts are the files of the folder scenarios.
#pragma once

#include <span>
#include <string_view>

namespace gpusched::sim {

struct NamedScenario {
  std::string_view name, text;
};
extern const std::span<const NamedScenario> kNamedScenarios;

}  // namespace gpusched::sim
