// The preemption bound in force, by the glossary's rule.
#include "core/bounds.h"

#include <gtest/gtest.h>

namespace gpusched::core {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Share At(int priority, Duration target) {
  Share share;
  share.priority = priority;
  share.latency_target = target;
  return share;
}

TEST(BoundsTest, ATwentiethOfTheSmallestTargetAboveOrTheSetting) {
  Bounds bounds(milliseconds(1), microseconds(50));
  EXPECT_EQ(bounds.InForce(0), milliseconds(1));
  bounds.Add(At(10, milliseconds(100)));  // a twentieth is 5 ms: the setting is less
  EXPECT_EQ(bounds.InForce(0), milliseconds(1));
  bounds.Add(At(20, milliseconds(10)));  // 0.5 ms
  EXPECT_EQ(bounds.InForce(0), microseconds(500));
  EXPECT_EQ(bounds.InForce(19), microseconds(500));
  EXPECT_EQ(bounds.InForce(20), milliseconds(1));
  bounds.Remove(At(20, milliseconds(10)));
  EXPECT_EQ(bounds.InForce(0), milliseconds(1));
}

TEST(BoundsTest, NeverUnderTheShortestUsefulChunk) {
  Bounds bounds(milliseconds(1), microseconds(50));
  bounds.Add(At(1, microseconds(100)));
  EXPECT_EQ(bounds.InForce(0), microseconds(50));
}

}  // namespace
}  // namespace gpusched::core
