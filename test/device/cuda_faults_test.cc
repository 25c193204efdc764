// Whichever call of the runtime fails, every order is answered once.
#include <gtest/gtest.h>

#include "support/cuda_faults.h"

namespace gpusched::test {
namespace {

TEST(CudaFaults, EveryOrderIsAnsweredOnceWhicheverCallFails) {
  const FaultTally tally = CheckCudaFaults(60);
  EXPECT_EQ(tally.wrong(), 0u) << tally.first;
  EXPECT_EQ(tally.stories, 60u * 4 * 2);
  EXPECT_GT(tally.failed, 0u);
  EXPECT_GT(tally.lost, 0u);
}

}  // namespace
}  // namespace gpusched::test
