// The rules of a share, by hand.
#include "executor/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpusched/reasons.h"

namespace gpusched::executor {
namespace {

Status Refusal(const Share& share, const SessionLimits& limits = {}, Rate others = 0) {
  return Admit(share, limits, others).status();
}

TEST(Admission, GrantsTheDefaultAndWhatFitsExactly) {
  EXPECT_TRUE(Refusal({}).ok());
  EXPECT_TRUE(Refusal({.min = kWholeDevice, .strict = true}).ok());
  EXPECT_TRUE(Refusal({.min = kWholeDevice / 4}, {}, kWholeDevice / 4 * 3).ok());
}

TEST(Admission, RefusesASumOfMinsAboveTheDeviceAndSaysIt) {
  const Status status = Refusal({.min = kWholeDevice / 2}, {}, kWholeDevice / 10 * 6);
  EXPECT_EQ(status.reason(), reason::kMinOversubscribed);
  EXPECT_THAT(status.message(),
              testing::AllOf(testing::HasSubstr("1.100"), testing::HasSubstr("0.400")));
}

TEST(Admission, NamesAllThatIsWrong) {
  const Status status =
      Refusal({.weight = 0, .min = -1, .max = 0, .strict = true, .priority = 128});
  EXPECT_EQ(status.reason(), reason::kBadShare);
  for (const char* word : {"weight", "min", "max", "strict", "priority"}) {
    EXPECT_THAT(status.message(), testing::HasSubstr(word));
  }
}

TEST(Admission, KeepsTheConfiguredCaps) {
  const SessionLimits limits{.max_priority = 3, .max_share = kWholeDevice / 2, .max_memory = 100};
  EXPECT_EQ(Refusal({.priority = 4}, limits).reason(), reason::kAboveConfiguredCap);
  EXPECT_EQ(Refusal({.min = kWholeDevice / 2 + 1}, limits).reason(), reason::kAboveConfiguredCap);
  EXPECT_EQ(Admit({}, limits, 0)->max, kWholeDevice / 2);
  EXPECT_EQ(AdmitMemory(101, limits).status().reason(), reason::kAboveConfiguredCap);
  EXPECT_EQ(*AdmitMemory(0, limits), limits.default_memory);
}

}  // namespace
}  // namespace gpusched::executor
