// Broken cores and policies, one and more for each rule of the checker: what it must catch.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/scheduler.h"
#include "sim/rules.h"
#include "sim/simulation.h"

namespace gpusched::sim {

// What a mutant's core is made from: what the checker believes to be true.
struct CoreParts {
  core::Limits limits;
  core::DeviceTraits traits;
  core::PolicySpec spec;
  std::unique_ptr<Policy> policy;
};

struct Mutant {
  std::string_view name;
  Rule rule = Rule::kOneAtATime;  // that it breaks
  std::string_view story;
  // Each may be missing. A core of its own, or one that distorts what passes:
  std::unique_ptr<Shim> (*core)(CoreParts) = nullptr;
  // In front of a policy, or in its place:
  std::unique_ptr<Policy> (*policy)(const std::string& kind, std::unique_ptr<Policy>) = nullptr;
};

std::span<const Mutant> AllMutants();

}  // namespace gpusched::sim
