// What there is to know of a kind of policy before one is made: its row in the catalog.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "gpusched/policy/params.h"
#include "gpusched/policy/policy.h"

namespace gpusched {

struct PolicyKind {
  std::string_view name;     // "round_robin"
  std::string_view promise;  // one line, for operators
  std::span<const ParameterSpec> parameters;
  std::span<const std::string_view> honours;  // the fields of Share it looks at, by name
  // Each parameter is in its own range already; appends what is wrong among them (an empty pointer
  // is returned then, and only then).
  std::unique_ptr<Policy> (*make)(const Parameters&, std::vector<FieldError>& errors) = nullptr;
};

}  // namespace gpusched
