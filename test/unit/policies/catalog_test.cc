// Policies made from text.
#include "catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusched {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

TEST(CatalogTest, EveryKindIsMadeWithDefaultsAndDescribesItself) {
  for (const PolicyKind* kind : PolicyCatalog()) {
    const BuiltPolicy built = BuildPolicy(kind->name, ParameterText());
    ASSERT_TRUE(built.ok()) << kind->name;
    EXPECT_NE(built.policy, nullptr);
    EXPECT_EQ(built.kind, kind);
    EXPECT_EQ(FindPolicyKind(kind->name), kind);
    EXPECT_EQ(built.parameters.size(), kind->parameters.size());
    EXPECT_FALSE(kind->promise.empty());
    for (const ParameterSpec& spec : kind->parameters) {
      EXPECT_LE(spec.least, spec.preset) << spec.name;
      EXPECT_LE(spec.preset, spec.greatest) << spec.name;
      EXPECT_FALSE(spec.meaning.empty());
    }
  }
}

TEST(CatalogTest, TheCanonicalTextMakesTheSamePolicyAgain) {
  for (const PolicyKind* kind : PolicyCatalog()) {
    const std::string canonical = BuildPolicy(kind->name, "").canonical;
    EXPECT_EQ(BuildPolicy(kind->name, std::string_view(canonical)).canonical, canonical);
  }
}

TEST(CatalogTest, TheDefaultsAreTheOnesTheGuidePromises) {
  EXPECT_EQ(BuildPolicy("round_robin", "").canonical, "slice=1ms");
  EXPECT_EQ(BuildPolicy("weighted_share", "").canonical, "slice=1ms,window=100ms");
  EXPECT_EQ(BuildPolicy("preemptive_priority", "").canonical,
            "slice.min=1ms,slice.max=20ms,starvation_bound=1s,background_share=5%");
}

TEST(CatalogTest, AnUnknownPolicyIsToldWhichThereAre) {
  const BuiltPolicy built = BuildPolicy("fair", "slice=1ms");
  EXPECT_EQ(built.kind, nullptr);
  EXPECT_EQ(built.policy, nullptr);
  EXPECT_THAT(
      built.errors,
      ElementsAre(AllOf(Field(&FieldError::field, "kind"),
                        Field(&FieldError::message,
                              HasSubstr("round_robin, weighted_share, preemptive_priority")))));
}

TEST(CatalogTest, MalformedUnknownAndOutOfRangeParametersAreAllNamed) {
  const BuiltPolicy built = BuildPolicy("weighted_share", "slice,window=1ms,speed=fast");
  EXPECT_EQ(built.policy, nullptr);
  EXPECT_THAT(built.errors,
              ElementsAre(Field(&FieldError::field, "slice"), Field(&FieldError::field, "speed"),
                          Field(&FieldError::field, "window")));
}

TEST(CatalogTest, ParametersThatContradictEachOtherAreRefused) {
  const BuiltPolicy built = BuildPolicy("preemptive_priority", "slice.min=5ms,slice.max=2ms");
  EXPECT_EQ(built.policy, nullptr);
  EXPECT_THAT(built.errors, ElementsAre(Field(&FieldError::field, "slice.min")));
}

TEST(CatalogTest, TheFallbackIsRoundRobinWithItsDefaults) {
  EXPECT_EQ(FallbackName(), "round_robin");
  EXPECT_EQ(FallbackParameters(), "slice=1ms");
  ASSERT_NE(FallbackPolicy(), nullptr);
  EXPECT_EQ(FallbackPolicy()->share_rule(), ShareRule::kEqual);
}

}  // namespace
}  // namespace gpusched
