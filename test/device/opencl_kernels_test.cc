// Real kernels on a real device, beside the same sums done plainly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "conformance/device_harness.h"
#include "device/opencl_machine.h"

namespace gpusched::device {
namespace {

class OpenClKernels : public ::testing::Test {
 protected:
  static constexpr SessionId kSession{.slot = 0, .serial = 1};

  void SetUp() override {
    device_ = OpenClOfThisMachine(sink_, 0);
    if (device_ == nullptr) GTEST_SKIP() << "no OpenCL driver on this machine";
    orders_ = std::make_unique<Orders>(*device_, sink_);
    Open(kSession);
  }
  void Open(SessionId session) {
    ASSERT_TRUE(device_->OpenSession(session, {.memory_bytes = 64 << 20}).ok());
  }
  void Load(SessionId session, const std::string& source) {
    const Prepared loaded = orders_->Load(session, 1, Source(source));
    ASSERT_TRUE(loaded.status.ok()) << loaded.status.ToString();
  }
  template <typename T>
  void Buffer(SessionId session, BufferId buffer, const std::vector<T>& values) {
    ASSERT_TRUE(orders_->Allocate(session, buffer, values.size() * sizeof(T)).ok());
    ASSERT_EQ(orders_->Write(session, buffer, values).outcome, Completion::Outcome::kDone);
  }
  void Launch(Dim3 grid, Dim3 block, std::vector<Argument> arguments) {
    const Completion done =
        orders_->Run({orders_->Launch(kSession, 1, 0, grid, block, std::move(arguments))});
    ASSERT_EQ(done.outcome, Completion::Outcome::kDone) << done.error.ToString();
  }

  RecordingSink sink_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Orders> orders_;
};

TEST_F(OpenClKernels, Saxpy) {
  constexpr std::uint32_t kCount = 10'007;  // no multiple of the block
  Load(kSession,
       "kernel void saxpy(float a, global const float *x, global float *y, uint count) {\n"
       "  const size_t i = get_global_id(0);\n"
       "  if (i < count) y[i] += a * x[i];\n"
       "}\n");
  std::vector<float> x(kCount), y(kCount), expected(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    x[i] = static_cast<float>(i % 1'000);
    y[i] = static_cast<float>(i % 777);
    expected[i] = 3 * x[i] + y[i];  // small whole numbers: exact in any order
  }
  Buffer(kSession, 1, x);
  Buffer(kSession, 2, y);
  Launch({.x = (kCount + 63) / 64}, {.x = 64},
         {Value(3.0f), BufferArgument{.buffer = 1}, BufferArgument{.buffer = 2}, Value(kCount)});
  EXPECT_EQ(orders_->Read<float>(kSession, 2, kCount), expected);
}

TEST_F(OpenClKernels, AReductionInLocalMemory) {
  constexpr std::uint32_t kBlocks = 37, kThreads = 128;
  Load(kSession,
       "kernel void reduce(global const uint *in, global uint *out, local uint *shared) {\n"
       "  const size_t me = get_local_id(0);\n"
       "  shared[me] = in[get_global_id(0)];\n"
       "  barrier(CLK_LOCAL_MEM_FENCE);\n"
       "  for (size_t half_way = get_local_size(0) / 2; half_way > 0; half_way /= 2) {\n"
       "    if (me < half_way) shared[me] += shared[me + half_way];\n"
       "    barrier(CLK_LOCAL_MEM_FENCE);\n"
       "  }\n"
       "  if (me == 0) out[get_group_id(0)] = shared[0];\n"
       "}\n");
  std::vector<std::uint32_t> in(kBlocks * kThreads), expected(kBlocks);
  for (std::uint32_t i = 0; i < in.size(); ++i) {
    in[i] = i * 2'654'435'761u;
    expected[i / kThreads] += in[i];
  }
  Buffer(kSession, 1, in);
  Buffer(kSession, 2, std::vector<std::uint32_t>(kBlocks));
  Launch({.x = kBlocks}, {.x = kThreads},
         {BufferArgument{.buffer = 1}, BufferArgument{.buffer = 2},
          LocalArgument{.bytes = kThreads * sizeof(std::uint32_t)}});
  EXPECT_EQ(orders_->Read<std::uint32_t>(kSession, 2, kBlocks), expected);
}

TEST_F(OpenClKernels, ATwoDimensionalStencil) {
  constexpr std::uint32_t kWidth = 96, kHeight = 64;
  Load(kSession,
       "kernel void stencil(global const int *in, global int *out) {\n"
       "  const int x = get_global_id(0), y = get_global_id(1);\n"
       "  const int width = get_global_size(0), height = get_global_size(1);\n"
       "  if (get_work_dim() != 2) return;\n"
       "  int sum = 4 * in[y * width + x];\n"
       "  if (x > 0) sum -= in[y * width + x - 1];\n"
       "  if (x + 1 < width) sum -= in[y * width + x + 1];\n"
       "  if (y > 0) sum -= in[(y - 1) * width + x];\n"
       "  if (y + 1 < height) sum -= in[(y + 1) * width + x];\n"
       "  out[y * width + x] = sum;\n"
       "}\n");
  std::vector<int> in(kWidth * kHeight), expected(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i * i % 1'009);
  const auto at = [&](std::int64_t x, std::int64_t y) {
    return x < 0 || y < 0 || x >= kWidth || y >= kHeight ? 0 : in[y * kWidth + x];
  };
  for (std::int64_t y = 0; y < kHeight; ++y) {
    for (std::int64_t x = 0; x < kWidth; ++x) {
      expected[y * kWidth + x] =
          4 * at(x, y) - at(x - 1, y) - at(x + 1, y) - at(x, y - 1) - at(x, y + 1);
    }
  }
  Buffer(kSession, 1, in);
  Buffer(kSession, 2, std::vector<int>(in.size()));
  Launch({.x = kWidth / 16, .y = kHeight / 8}, {.x = 16, .y = 8},
         {BufferArgument{.buffer = 1}, BufferArgument{.buffer = 2}});
  EXPECT_EQ(orders_->Read<int>(kSession, 2, in.size()), expected);
}

TEST_F(OpenClKernels, LaunchesInFlightKeepTheirOwnArguments) {
  constexpr std::uint32_t kLaunches = 100;
  Load(kSession, "kernel void put(global uint *x, uint at) { x[at] = at + 1; }\n");
  Buffer(kSession, 1, std::vector<std::uint32_t>(kLaunches));
  Ticket last{};
  for (std::uint32_t i = 0; i < kLaunches; ++i) {
    last = orders_->Start(
        {orders_->Launch(kSession, 1, 0, {}, {}, {BufferArgument{.buffer = 1}, Value(i)})});
  }
  sink_.Finished(last);
  std::vector<std::uint32_t> expected(kLaunches);
  std::iota(expected.begin(), expected.end(), 1u);
  EXPECT_EQ(orders_->Read<std::uint32_t>(kSession, 1, kLaunches), expected);
}

TEST_F(OpenClKernels, SessionsInterleaveAndKeepApart) {
  const SessionId other{.slot = 1, .serial = 2};
  Open(other);
  const std::string source =
      "kernel void add(global uint *x, uint what) { x[get_global_id(0)] += what; }\n";
  for (const SessionId session : {kSession, other}) {
    Load(session, source);
    Buffer(session, 1, std::vector<std::uint32_t>(64));
  }
  Ticket last{};
  for (int i = 0; i < 50; ++i) {
    for (const SessionId session : {kSession, other}) {
      const auto what = static_cast<std::uint32_t>(session.serial);
      last = orders_->Start({orders_->Launch(session, 1, 0, {.x = 8}, {.x = 8},
                                             {BufferArgument{.buffer = 1}, Value(what)})});
    }
  }
  sink_.Finished(last);
  EXPECT_EQ(orders_->Read<std::uint32_t>(kSession, 1, 64), std::vector<std::uint32_t>(64, 50));
  EXPECT_EQ(orders_->Read<std::uint32_t>(other, 1, 64), std::vector<std::uint32_t>(64, 100));
}

}  // namespace
}  // namespace gpusched::device
