// How many blocks run side by side on the CUDA device, by the arithmetic of the stand-in's
// hardware.
//
// "stand-in 90" has 4 multiprocessors, here each for 2,048 threads, 32 blocks and 228 KiB of shared
// memory, of which the driver keeps 1 KiB a block. "stand-in 75" has 2, each for 1,024 threads, 16
// blocks and 64 KiB, of which it keeps none.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "device/cuda_stand_in.h"
#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

// 16 KiB of shared memory of its own; at most 512 threads.
constexpr const char* kShares = R"(
.visible .entry shares() .maxntid 512, 1, 1 {
  .shared .align 4 .b8 room[16384];
  .reg .b32 %r<2>;
  mov.u32 %r1, %ctaid.x;
  st.shared.u32 [room], %r1;
  ret;
}
)";
constexpr const char* kOccupancy = "cudaOccupancyMaxActiveBlocksPerMultiprocessor";
constexpr std::uint64_t kKiB = 1'024;

class CudaWaves : public ::testing::Test {
 protected:
  static constexpr SessionId kSession{.slot = 0, .serial = 1};
  enum Kernel : std::uint32_t { kPlainKernel, kSharesKernel };

  void SetUp() override { Use("stand-in 90"); }
  void Use(const std::string& name) {
    orders_.reset();
    device_.reset();
    sink_ = std::make_unique<RecordingSink>();  // tickets begin anew
    test::FakeDriver driver = test::DefaultDriver();
    driver.gpus[0].most_blocks = 32;
    driver.gpus[1].most_blocks = 16;
    test::InstallDriver(std::move(driver));
    auto opened = OpenStandIns(*sink_, 1, 0, name);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    device_ = std::make_unique<PolledDevice>(std::move(opened->front()));
    orders_ = std::make_unique<Orders>(*device_, *sink_);
    ASSERT_TRUE(device_->OpenSession(kSession, {.memory_bytes = 1 << 20}).ok());
    const Prepared loaded = orders_->Load(kSession, 1, Ptx(std::string(kPlain) + kShares));
    ASSERT_TRUE(loaded.status.ok()) << loaded.status.ToString();
    ASSERT_TRUE(loaded.module.kernels[kSharesKernel].cuttable);
  }
  LaunchCommand Launch(Dim3 block, std::uint64_t dynamic_bytes = 0, Kernel kernel = kPlainKernel) {
    LaunchCommand launch = orders_->Launch(kSession, 1, kernel, {10'000}, block);
    launch.dynamic_local_bytes = dynamic_bytes;
    return launch;
  }
  std::uint64_t Wave(Dim3 block, std::uint64_t dynamic_bytes = 0, Kernel kernel = kPlainKernel) {
    return device_->WaveBlocks(Launch(block, dynamic_bytes, kernel));
  }

  std::unique_ptr<RecordingSink> sink_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Orders> orders_;
};

TEST_F(CudaWaves, ThreadsBlocksAndSharedMemoryBound) {
  EXPECT_EQ(Wave({1'024}), 4u * 2);                         // 2,048 / 1,024
  EXPECT_EQ(Wave({256}), 4u * 8);                           // 2,048 / 256
  EXPECT_EQ(Wave({8, 8, 4}), 4u * 8);                       // as many threads
  EXPECT_EQ(Wave({100}), 4u * 16);                          // four warps are 128 threads
  EXPECT_EQ(Wave({1}), 4u * 32);                            // no more blocks than that
  EXPECT_EQ(Wave({256}, 100 * kKiB), 4u * 2);               // 228 / (100 + 1)
  EXPECT_EQ(Wave({256}, 50 * kKiB), 4u * 4);                // 228 / (50 + 1)
  EXPECT_EQ(Wave({64}, 0, kSharesKernel), 4u * 13);         // 228 / (16 + 1)
  EXPECT_EQ(Wave({64}, 40 * kKiB, kSharesKernel), 4u * 4);  // 228 / (16 + 40 + 1)
}

TEST_F(CudaWaves, AnotherDeviceHasItsOwn) {
  Use("stand-in 75");
  EXPECT_EQ(Wave({256}), 2u * 4);                           // 1,024 / 256
  EXPECT_EQ(Wave({1}), 2u * 16);                            // no more blocks than that
  EXPECT_EQ(Wave({64}, 0, kSharesKernel), 2u * 4);          // 64 / 16
  EXPECT_EQ(Wave({64}, 16 * kKiB, kSharesKernel), 2u * 2);  // 64 / 32
}

TEST_F(CudaWaves, TheDriverIsAskedOnceForEachKindOfBlock) {
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(Wave({256}), 32u);
    EXPECT_EQ(Wave({16, 16}), 32u);
    EXPECT_EQ(Wave({512}), 16u);
    EXPECT_EQ(Wave({256}, 50 * kKiB), 16u);
    EXPECT_EQ(Wave({256}, 0, kSharesKernel), 32u);
  }
  EXPECT_EQ(test::CallsOf(kOccupancy), 4u);
}

TEST_F(CudaWaves, WhatIsForgottenIsAskedAgain) {
  for (std::uint32_t threads = 32; threads <= 320; threads += 32) Wave({threads});
  EXPECT_EQ(Wave({32}), 4u * 32);
  EXPECT_EQ(test::CallsOf(kOccupancy), 11u);
}

TEST_F(CudaWaves, IsOneWhereItCannotBeTold) {
  EXPECT_EQ(Wave({2'000}), 1u);                    // refused when it starts
  EXPECT_EQ(Wave({0}), 1u);                        // likewise
  EXPECT_EQ(Wave({1'024}, 0, kSharesKernel), 1u);  // the kernel takes 512
  EXPECT_EQ(Wave({64}, 300 * kKiB), 1u);           // more than there is
  LaunchCommand unknown = Launch({256});
  unknown.module = 9;
  EXPECT_EQ(device_->WaveBlocks(unknown), 1u);
  unknown = Launch({256});
  unknown.kernel = 9;
  EXPECT_EQ(device_->WaveBlocks(unknown), 1u);
  EXPECT_EQ(test::CallsOf(kOccupancy), 0u);
  // A driver that cannot say now may say later.
  test::FailNext(kOccupancy, cudaErrorInvalidValue);
  EXPECT_EQ(Wave({256}), 1u);
  EXPECT_EQ(Wave({256}), 32u);
}

TEST_F(CudaWaves, WhatRunsWholeIsNotAskedFor) {
  std::ifstream file(GPUSCHED_PTX_FIXTURES "/unsafe/spin_plain.ptx", std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const Prepared loaded = orders_->Load(kSession, 2, {Image::Format::kPtx, text});
  ASSERT_TRUE(loaded.status.ok()) << loaded.status.ToString();
  ASSERT_FALSE(loaded.module.kernels[0].cuttable);
  EXPECT_EQ(device_->WaveBlocks(orders_->Launch(kSession, 2, 0, {64}, {256})), 1u);
  EXPECT_EQ(test::CallsOf(kOccupancy), 0u);
}

TEST_F(CudaWaves, AQuestionThatMeetsABrokenContextLosesTheDevice) {
  test::FailNext(kOccupancy, cudaErrorIllegalAddress);
  EXPECT_EQ(Wave({256}), 1u);
  const Completion lost = orders_->Run({Launch({256})});
  EXPECT_EQ(lost.outcome, Completion::Outcome::kLost);
  EXPECT_EQ(lost.error.reason(), reason::kDeviceLost);
  EXPECT_EQ(Wave({256}), 1u);
  EXPECT_EQ(sink_->losses(), 1);
}

}  // namespace
}  // namespace gpusched::device
