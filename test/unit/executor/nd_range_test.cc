// Launches told by their threads: which block they get where none is named, and what is refused.
#include "bench.h"
#include "executor/signature.h"
#include "gpusched/reasons.h"

namespace gpusched::executor {
namespace {

using device::Dim3;
using testing::HasSubstr;

std::array<std::uint32_t, 3> Chosen(Dim3 threads, std::uint64_t most = 1'024,
                                    std::uint32_t units = 4) {
  device::KernelInfo kernel;
  kernel.max_block_threads = most;
  device::DeviceInfo device;
  device.compute_units = units;
  const Dim3 block = ChooseBlock(threads, kernel, device);
  return {block.x, block.y, block.z};
}

using Block = std::array<std::uint32_t, 3>;

TEST(TheBlockOfANdRange, HasUpTo256ThreadsThatDivideIt) {
  EXPECT_EQ(Chosen({1'024, 768, 1}), (Block{256, 1, 1}));
  EXPECT_EQ(Chosen({96, 1'000, 1}), (Block{96, 2, 1}));
  // 30 x 6 are 180; a second layer would pass 256.
  EXPECT_EQ(Chosen({30, 30, 30}), (Block{30, 6, 1}));
  EXPECT_EQ(Chosen({1'009, 1, 1}), (Block{1, 1, 1})) << "a prime number";
  EXPECT_EQ(Chosen({1 << 20, 1, 1}, 32), (Block{32, 1, 1})) << "no more than the kernel takes";
  EXPECT_EQ(Chosen({1 << 20, 1, 1}, 0), (Block{1, 1, 1}));
  // Along z no more than 64, of which 50 divides 10,000.
  EXPECT_EQ(Chosen({1, 1, 10'000}), (Block{1, 1, 50}));
}

TEST(TheBlockOfANdRange, LeavesEveryUnitEightButHas64Threads) {
  EXPECT_EQ(Chosen({4'096, 1, 1}), (Block{128, 1, 1}));  // 4,096 / 4 / 8
  EXPECT_EQ(Chosen({4'096, 1, 1}, 1'024, 2), (Block{256, 1, 1}));
  EXPECT_EQ(Chosen({100, 1, 1}), (Block{50, 1, 1}));
}

TEST(TheBlockOfANdRange, IsTheOneThatTheKernelRequires) {
  device::KernelInfo kernel;
  kernel.required_block = {8, 2, 1};
  const Dim3 block = ChooseBlock({16, 16, 1}, kernel, device::DeviceInfo());
  EXPECT_EQ(block.x, 8u);
  EXPECT_EQ(block.y, 2u);
}

TEST(TheBlockOfANdRange, IsNamedWithWhoRequiresIt) {
  Launch launch;
  launch.range = NdRange{.threads = {20, 2, 1}};
  const Status uneven = ShapeBlocks(launch, {8, 2, 1}, ", which kernel 'k' requires,");
  EXPECT_EQ(uneven.reason(), reason::kBadBlock);
  EXPECT_THAT(uneven.message(),
              HasSubstr("8 x 2 x 1 threads, which kernel 'k' requires, does not divide the 20 x"));
}

JobReport Outcome(const std::shared_ptr<TestPort>& port, Bench& bench, NdRange range) {
  Launch launch = LaunchOf(7, "quick");
  launch.grid = {0, 0, 0};
  launch.range = range;
  port->Say(bench.executor(), port, JobOf(1, {launch}));
  return port->Take<JobReport>().value();
}

TEST(ANdRange, RunsOrIsRefusedInTheWordsOfThreads) {
  Bench bench;
  const auto port = bench.Open();
  port->Say(bench.executor(), port, Kernels(7));
  EXPECT_EQ(Outcome(port, bench, {.threads = {640, 3, 1}}).outcome, Outcome::kDone);
  EXPECT_EQ(Outcome(port, bench, {.threads = {640, 3, 1}, .block = {64, 3, 1}}).outcome,
            Outcome::kDone);
  const Status uneven = Outcome(port, bench, {.threads = {640, 3, 1}, .block = {64, 2, 1}}).error;
  EXPECT_EQ(uneven.reason(), reason::kBadBlock);
  EXPECT_THAT(uneven.message(), HasSubstr("64 x 2 x 1 threads does not divide the 640 x 3 x 1"));
  for (const NdRange& bad :
       {NdRange{}, NdRange{.threads = {0, 1, 1}}, NdRange{.threads = {0, 1, 1}, .block = {1, 1, 1}},
        NdRange{.threads = {~0u, ~0u, ~0u}}}) {
    EXPECT_EQ(Outcome(port, bench, bad).error.reason(), reason::kBadGrid);
  }
  EXPECT_THAT(Outcome(port, bench, {.threads = {0, 1, 1}}).error.message(),
              HasSubstr("0 x 1 x 1 threads"));
  EXPECT_EQ(Outcome(port, bench, {.threads = {64, 1, 1}, .block = {64, 0, 0}}).error.reason(),
            reason::kBadBlock);
  EXPECT_EQ(
      Outcome(port, bench, {.threads = {1 << 20, 1, 1}, .block = {1 << 20, 1, 1}}).error.reason(),
      reason::kBadBlock);
}

TEST(ANdRange, HasNoOffsetWhereTheDeviceHasNone) {
  Bench bench;
  const auto port = bench.Open();
  port->Say(bench.executor(), port, Kernels(7));
  const JobReport report = Outcome(port, bench, {.threads = {64, 1, 1}, .offset = {0, 5, 0}});
  EXPECT_EQ(report.outcome, Outcome::kRefused);
  EXPECT_EQ(report.error.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(report.error.reason(), reason::kBadOffset);
  EXPECT_THAT(report.error.message(), HasSubstr("0 x 5 x 0"));
}

// What one job chose is not kept for the next: the block follows from the kernel each time.
TEST(ANdRange, MayStandInATemplate) {
  Bench bench;
  const auto port = bench.Open();
  Launch launch = LaunchOf(7, "takes");
  launch.range = NdRange{.threads = {100, 1, 1}};
  launch.arguments = {device::BufferArgument{.buffer = 1}, device::ValueArgument(4, '\0')};
  port->Say(bench.executor(), port, Kernels(7), Allocate{1, 64}, RegisterTemplate{5, {launch}});
  for (std::uint64_t job = 1; job <= 3; ++job) {
    Submit by_template;
    by_template.job = job;
    by_template.template_id = 5;
    if (job == 2) by_template.changes = {{0, 1, device::ValueArgument(4, '\1'), 0}};
    port->Say(bench.executor(), port, by_template);
    const auto report = port->Take<JobReport>();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->outcome, Outcome::kDone) << report->error.ToString();
  }
}

}  // namespace
}  // namespace gpusched::executor
