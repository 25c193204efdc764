// The table of built-in policies: one line each.
#include "catalog.h"

#include "preemptive_priority.h"
#include "round_robin.h"
#include "weighted_share.h"

namespace gpusched {

namespace {

constexpr const PolicyKind* kCatalog[] = {
    &kRoundRobin,
    &kWeightedShare,
    &kPreemptivePriority,
};

constexpr const PolicyKind& kFallback = kRoundRobin;

BuiltPolicy Build(std::string_view name, const ParameterText& given,
                  std::vector<FieldError> errors) {
  BuiltPolicy built;
  built.errors = std::move(errors);
  built.kind = FindPolicyKind(name);
  if (built.kind == nullptr) {
    built.errors.push_back(
        {"kind", "there is no policy '" + std::string(name) + "'; there are " + PolicyNames()});
    return built;
  }
  const Parameters parameters = Parameters::Parse(built.kind->parameters, given, built.errors);
  if (!built.ok()) return built;
  built.policy = built.kind->make(parameters, built.errors);
  built.canonical = parameters.Canonical();
  built.parameters = parameters.Text();
  return built;
}

}  // namespace

std::span<const PolicyKind* const> PolicyCatalog() { return kCatalog; }

const PolicyKind* FindPolicyKind(std::string_view name) {
  for (const PolicyKind* kind : kCatalog) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

std::string PolicyNames() {
  std::string names;
  for (const PolicyKind* kind : kCatalog) {
    if (!names.empty()) names += ", ";
    names += kind->name;
  }
  return names;
}

BuiltPolicy BuildPolicy(std::string_view kind, const ParameterText& parameters) {
  return Build(kind, parameters, {});
}

BuiltPolicy BuildPolicy(std::string_view kind, std::string_view parameters) {
  std::vector<FieldError> errors;
  const ParameterText given = SplitParameters(parameters, errors);
  return Build(kind, given, std::move(errors));
}

std::unique_ptr<Policy> FallbackPolicy() {
  std::vector<FieldError> none;
  return kFallback.make(Parameters(kFallback.parameters), none);
}
std::string_view FallbackName() { return kFallback.name; }
std::string FallbackParameters() { return Parameters(kFallback.parameters).Canonical(); }

}  // namespace gpusched
