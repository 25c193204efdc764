// The one table of policies: what there is, and how one is made from text.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/policy/kind.h"
#include "gpusched/policy/params.h"
#include "gpusched/policy/policy.h"

namespace gpusched {

std::span<const PolicyKind* const> PolicyCatalog();
const PolicyKind* FindPolicyKind(std::string_view name);  // nullptr: there is none
std::string PolicyNames();                                // "round_robin, weighted_share, ..."

// A policy made from text, or everything that is wrong with the text.
struct BuiltPolicy {
  const PolicyKind* kind = nullptr;  // nullptr: no such kind
  std::unique_ptr<Policy> policy;    // empty if and only if there are errors
  std::string canonical;             // "slice=1ms,window=100ms"
  ParameterText parameters;          // all of them, defaults included
  // In the order met. An unknown kind is an error of the field "kind"; an unknown, malformed or
  // out-of-range parameter one of its own name.
  std::vector<FieldError> errors;

  bool ok() const { return errors.empty(); }
};
BuiltPolicy BuildPolicy(std::string_view kind, const ParameterText& parameters);
// The same from "k=v,k=v".
BuiltPolicy BuildPolicy(std::string_view kind, std::string_view parameters);

// What takes over from a policy that broke its contract: round robin with its defaults.
std::unique_ptr<Policy> FallbackPolicy();
std::string_view FallbackName();
std::string FallbackParameters();  // canonical

}  // namespace gpusched
