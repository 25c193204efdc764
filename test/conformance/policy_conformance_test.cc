// Every policy of the catalog, and the one of the guide, against the contract of policies.
#include "conformance/policy_conformance.h"

#include "catalog.h"
#include "shortest_job_first.h"

namespace gpusched::testing {
namespace {

PolicyUnderTest Built(std::string name, std::string kind, std::string parameters) {
  return {std::move(name), [kind = std::move(kind), parameters = std::move(parameters)] {
            return std::move(BuildPolicy(kind, std::string_view(parameters)).policy);
          }};
}

std::vector<PolicyUnderTest> Catalog() {
  std::vector<PolicyUnderTest> all;
  for (const PolicyKind* kind : PolicyCatalog()) {
    all.push_back(Built(std::string(kind->name), std::string(kind->name), ""));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Catalog, PolicyConformance, ::testing::ValuesIn(Catalog()),
                         PolicyUnderTest::NameOf);

INSTANTIATE_TEST_SUITE_P(
    OtherParameters, PolicyConformance,
    ::testing::Values(
        Built("round_robin_short", "round_robin", "slice=200us"),
        Built("round_robin_long", "round_robin", "slice=50ms"),
        Built("weighted_share_fine", "weighted_share", "slice=200us,window=10ms"),
        Built("weighted_share_coarse", "weighted_share", "slice=20ms,window=5s"),
        Built("preemptive_priority_impatient", "preemptive_priority",
              "starvation_bound=20ms,background_share=50%"),
        Built("preemptive_priority_constant", "preemptive_priority", "slice.min=4ms,slice.max=4ms"),
        Built("preemptive_priority_ruthless", "preemptive_priority", "background_share=0%")),
    PolicyUnderTest::NameOf);

INSTANTIATE_TEST_SUITE_P(Sample, PolicyConformance,
                         ::testing::Values(PolicyUnderTest{
                             "shortest_job_first",
                             [] {
                               std::vector<FieldError> errors;
                               const auto& kind = sample::kShortestJobFirst;
                               return kind.make(Parameters(kind.parameters), errors);
                             }}),
                         PolicyUnderTest::NameOf);

}  // namespace
}  // namespace gpusched::testing
