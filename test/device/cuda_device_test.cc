// What is the CUDA device's own, on the stand-in runtime: cutting, layouts, errors, loss, probing.
#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>

#include "conformance/expect_refused.h"
#include "device/cuda_stand_in.h"
#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

using ::testing::HasSubstr;

class Cuda : public ::testing::Test {
 protected:
  static constexpr SessionId kSession{.slot = 0, .serial = 1};
  static constexpr BufferId kBuffer = 3;

  void SetUp() override {
    test::InstallDriver(test::DefaultDriver());
    device_ = CudaStandIn(sink_, 0);
    orders_ = std::make_unique<Orders>(*device_, sink_);
    ASSERT_TRUE(device_->OpenSession(kSession, {.memory_bytes = 64 << 20}).ok());
    ASSERT_TRUE(orders_->Allocate(kSession, kBuffer, 1 << 20).ok());
    const Prepared loaded = orders_->Load(kSession, 1, Ptx(std::string(kPlain) + kTouch + kWho));
    ASSERT_TRUE(loaded.status.ok()) << loaded.status.ToString();
    module_ = loaded.module;
  }
  LaunchCommand Who(Dim3 grid, Dim3 block = {}) {
    return orders_->Launch(kSession, 1, 2, grid, block, {BufferArgument{.buffer = kBuffer}});
  }
  Status Fails(const LaunchCommand& launch) {
    const Completion completion = orders_->Run({launch});
    EXPECT_EQ(completion.outcome, Completion::Outcome::kFailed);
    return completion.error;
  }

  RecordingSink sink_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Orders> orders_;
  ModuleInfo module_;
};

TEST_F(Cuda, PartsOfALaunchTogetherAreTheWhole) {
  ASSERT_TRUE(module_.kernels[2].cuttable) << module_.kernels[2].whole_reason;
  const Dim3 grid{7, 5, 3};
  LaunchCommand part = Who(grid);
  // Pieces that begin and end within rows and planes.
  for (const std::uint64_t count : {1u, 2u, 9u, 30u, 41u, 22u}) {
    part.count = count;
    EXPECT_EQ(orders_->Run({part}).outcome, Completion::Outcome::kDone);
    part.first += count;
  }
  ASSERT_EQ(part.first, Volume(grid));
  std::vector<std::uint32_t> expected(Volume(grid));
  std::iota(expected.begin(), expected.end(), 1u);
  EXPECT_EQ(orders_->Read<std::uint32_t>(kSession, kBuffer, expected.size()), expected);
}

TEST_F(Cuda, APartTouchesItsOwnBlocksOnly) {
  LaunchCommand part = Who({10, 10});
  part.first = 23;
  part.count = 40;
  orders_->Run({part});
  const auto seen = orders_->Read<std::uint32_t>(kSession, kBuffer, 100);
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(seen[i], i >= 23 && i < 63 ? i + 1 : 0);
}

TEST_F(Cuda, CompletesNothingBeforeItIsOver) {
  Ticket held;
  {
    const test::HeldStreams hold;
    held = orders_->Start({Who({4})});
    EXPECT_EQ(sink_.completions().size(), 0u);
  }
  EXPECT_EQ(sink_.Finished(held).outcome, Completion::Outcome::kDone);
}

TEST_F(Cuda, AHigherClassNeedNotWaitForALowerOne) {
  ASSERT_EQ(device_->info().priority_classes, 6u) << "0 to -5, as the driver says";
  const auto plain = [&](std::uint32_t priority_class) {
    return orders_->Start(
        {.what = orders_->Launch(kSession, 1, 0, {1}, {1}), .priority_class = priority_class});
  };
  std::optional<test::HeldKernel> hold("who");
  const Ticket low = orders_->Start({.what = Who({4}), .priority_class = 2});
  const Ticket behind = plain(2), high = plain(3);
  EXPECT_EQ(sink_.Finished(high).outcome, Completion::Outcome::kDone);
  EXPECT_EQ(sink_.completions().size(), 1u) << "a class keeps order";
  hold.reset();
  EXPECT_EQ(sink_.Finished(behind).outcome, Completion::Outcome::kDone);
  EXPECT_EQ(sink_.completions()[1].ticket, low);
}

TEST_F(Cuda, WhatIsLostWithTheDeviceNamesEveryLaneThatRan) {
  std::optional<test::HeldKernel> hold("who");
  const Ticket low = orders_->Start({.what = Who({4}), .priority_class = 0});
  test::FailNext("cudaEventQuery", cudaErrorIllegalAddress);
  EXPECT_THAT(sink_.Finished(low).error.message(),
              HasSubstr("kernel 'who' of session 1 was running"));
  hold.reset();
}

TEST_F(Cuda, RefusesShapesBeyondTheKernelAndTheDevice) {
  ExpectRefused(Fails(Who({1, 70'000})), StatusCode::kInvalidArgument, reason::kBadGrid, "65535");
  ExpectRefused(Fails(Who({1}, {2'000})), StatusCode::kInvalidArgument, reason::kBadBlock, "1024");
  ExpectRefused(Fails(Who({1}, {1, 1, 100})), StatusCode::kInvalidArgument, reason::kBadBlock,
                "64");
  LaunchCommand greedy = Who({1});
  greedy.dynamic_local_bytes = 300 << 10;
  ExpectRefused(Fails(greedy), StatusCode::kInvalidArgument, reason::kLocalMemory, "shared memory");
  greedy.dynamic_local_bytes = 100 << 10;
  EXPECT_EQ(orders_->Run({greedy}).outcome, Completion::Outcome::kDone);
  LaunchCommand beyond = Who({4});
  beyond.first = 3;
  beyond.count = 2;
  ExpectRefused(Fails(beyond), StatusCode::kInvalidArgument, reason::kBadGrid, "end of the grid");
}

TEST_F(Cuda, RefusesArgumentsThatDoNotFitTheLayout) {
  const auto touch = [&](std::vector<Argument> arguments) {
    return Fails(orders_->Launch(kSession, 1, 1, {1}, {1}, std::move(arguments)));
  };
  const BufferArgument buffer{.buffer = kBuffer};
  EXPECT_EQ(touch({buffer}).reason(), reason::kArgumentCount);
  EXPECT_EQ(touch({buffer, Value(std::uint16_t{1})}).reason(), reason::kArgumentSize);
  EXPECT_EQ(touch({buffer, Value(std::uint64_t{1})}).reason(), reason::kArgumentSize);
  EXPECT_EQ(touch({buffer, buffer}).reason(), reason::kArgumentKind);
  EXPECT_EQ(touch({buffer, LocalArgument{4}}).reason(), reason::kArgumentKind);
  EXPECT_EQ(touch({BufferArgument{.buffer = 99}, Value(1)}).reason(), reason::kUnknownBuffer);
  EXPECT_EQ(touch({BufferArgument{kBuffer, 4}, Value(1)}).reason(), reason::kMisaligned);
  EXPECT_EQ(touch({BufferArgument{kBuffer, 1 << 20}, Value(1)}).reason(), reason::kOutOfBounds);
}

TEST_F(Cuda, ALaunchErrorGoesToTheJobThatCausedItAlone) {
  test::FailNext("cudaLaunchKernelExC", cudaErrorLaunchOutOfResources);
  const Ticket first = orders_->Start({Who({4})});
  const Ticket second = orders_->Start({Who({4})});
  const Completion failed = sink_.Finished(first);
  EXPECT_EQ(failed.outcome, Completion::Outcome::kFailed);
  EXPECT_THAT(failed.error.message(), HasSubstr("cudaErrorLaunchOutOfResources (701)"));
  EXPECT_EQ(sink_.Finished(second).outcome, Completion::Outcome::kDone);
  EXPECT_EQ(sink_.losses(), 0);
}

TEST_F(Cuda, ALaunchThatFailsInPartIsOverOnlyWhenItsOtherPartsAre) {
  LaunchCommand part = Who({10, 10});
  part.first = 5;
  part.count = 20;  // three boxes: the end of a row, a row, the beginning of one
  Ticket failing;
  {
    const test::HeldStreams hold;
    test::FailNext("cudaLaunchKernelExC", cudaErrorLaunchOutOfResources, 2);
    failing = orders_->Start({part});
    EXPECT_EQ(sink_.completions().size(), 0u);
  }
  EXPECT_EQ(sink_.Finished(failing).outcome, Completion::Outcome::kFailed);
  const auto seen = orders_->Read<std::uint32_t>(kSession, kBuffer, 30);
  EXPECT_EQ(seen[19], 20u);
  EXPECT_EQ(seen[20], 0u);
}

TEST_F(Cuda, NoMemoryLeftOutsideTheQuotaIsToldAsSuch) {
  test::FailNext("cudaMallocAsync", cudaErrorMemoryAllocation);
  ExpectRefused(orders_->Allocate(kSession, 50, 4'096), StatusCode::kResourceExhausted,
                reason::kDeviceMemory, "outside gpusched");
  EXPECT_TRUE(orders_->Allocate(kSession, 50, 4'096).ok());
}

TEST_F(Cuda, AStickyErrorLosesTheDeviceOnceAndNamesTheSession) {
  const SessionId wild{.slot = 1, .serial = 7};
  ASSERT_TRUE(device_->OpenSession(wild, {.memory_bytes = 1 << 20}).ok());
  ASSERT_TRUE(orders_->Load(wild, 1, Ptx(kWild)).status.ok());
  std::vector<Ticket> lost;
  Ticket before;
  {
    const test::HeldStreams hold;
    before = orders_->Start({Who({4})});
    lost.push_back(orders_->Start({orders_->Launch(wild, 1, 0, {1}, {1})}));
    for (int i = 0; i < 5; ++i) lost.push_back(orders_->Start({Who({4})}));
  }
  for (const Ticket ticket : lost) {
    const Completion completion = sink_.Finished(ticket);
    EXPECT_EQ(completion.outcome, Completion::Outcome::kLost);
    EXPECT_EQ(completion.error.reason(), reason::kDeviceLost);
    EXPECT_THAT(completion.error.message(), HasSubstr("cudaErrorIllegalAddress (700)"));
  }
  // Which of the two was running cannot always be told: the end of the first may be seen late.
  const Completion first = sink_.Finished(before);
  if (first.outcome == Completion::Outcome::kDone) {
    EXPECT_THAT(sink_.Finished(lost[0]).error.message(),
                HasSubstr("kernel 'wild' of session 7 was running"));
  }
  // From now on everything says so, and sessions can still be closed.
  EXPECT_EQ(orders_->Run({Who({4})}).outcome, Completion::Outcome::kLost);
  EXPECT_EQ(orders_->Allocate(kSession, 60, 64).reason(), reason::kDeviceLost);
  EXPECT_TRUE(orders_->Close(wild).ok());
  EXPECT_EQ(sink_.losses(), 1);
  std::vector<Ticket> order;
  for (const Completion& completion : sink_.completions()) order.push_back(completion.ticket);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// The driver says so of memory and of links: nothing in the context is to be trusted any more.
class CudaLostBytes : public Cuda, public ::testing::WithParamInterface<cudaError_t> {};

TEST_P(CudaLostBytes, LoseTheDevice) {
  test::FailNext("cudaMemsetAsync", GetParam());
  const Completion lost =
      orders_->Run({FillCommand{.session = kSession, .buffer = kBuffer, .count = 64, .total = 64}});
  EXPECT_EQ(lost.outcome, Completion::Outcome::kLost);
  EXPECT_THAT(lost.error.message(), HasSubstr(cudaGetErrorName(GetParam())));
  EXPECT_THAT(lost.error.message(), HasSubstr("a fill of session 1 was running"));
  EXPECT_EQ(orders_->Allocate(kSession, 60, 64).reason(), reason::kDeviceLost);
  EXPECT_EQ(sink_.losses(), 1);
}

INSTANTIATE_TEST_SUITE_P(Errors, CudaLostBytes,
                         ::testing::Values(cudaErrorECCUncorrectable, cudaErrorNvlinkUncorrectable),
                         [](const auto& error) {
                           return std::string(cudaGetErrorName(error.param));
                         });

TEST_F(Cuda, ALostDeviceKeepsWhatItsCommandsMayStillTouch) {
  std::vector<std::uint32_t> out(1'024);
  {
    const test::HeldStreams hold;
    orders_->Start({Who({4})});
    const Ticket last =
        orders_->Start({device::CopyOutCommand{.session = kSession,
                                               .buffer = kBuffer,
                                               .target = reinterpret_cast<std::byte*>(out.data()),
                                               .count = 4'096,
                                               .total = 4'096}});
    test::FailNext("cudaEventQuery", cudaErrorUnknown);
    EXPECT_EQ(sink_.Finished(last).outcome, Completion::Outcome::kLost);
    EXPECT_TRUE(orders_->Close(kSession).ok());
    EXPECT_EQ(test::StillAlive().allocations, 1u);
    EXPECT_EQ(test::StillAlive().libraries, 1u);
  }
  orders_.reset();
  device_.reset();
  EXPECT_EQ(test::StillAlive().allocations, 0u);
  EXPECT_EQ(out, std::vector<std::uint32_t>(1'024));  // what is lost is not written to any more
}

TEST_F(Cuda, OneDeviceIsLostAndTheOtherWorksOn) {
  RecordingSink both;
  auto devices = OpenStandIns(both, 2);
  ASSERT_TRUE(devices.ok()) << devices.status().ToString();
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_NE((*devices)[0]->info().uuid, (*devices)[1]->info().uuid);
  EXPECT_NE((*devices)[0]->info().compute_units, (*devices)[1]->info().compute_units);
  RecordingSink other_sink;
  auto second = OpenStandIns(other_sink, 1, 0, (*devices)[1]->info().uuid);
  ASSERT_TRUE(second.ok());
  PolledDevice other(std::move(second->front()));
  Orders orders(other, other_sink);
  ASSERT_TRUE(other.OpenSession(kSession, {.memory_bytes = 1 << 20}).ok());
  ASSERT_TRUE(orders.Load(kSession, 1, Ptx(kPlain)).status.ok());
  ASSERT_TRUE(orders_->Load(kSession, 9, Ptx(kWild)).status.ok());
  EXPECT_EQ(orders_->Run({orders_->Launch(kSession, 9, 0, {1}, {1})}).outcome,
            Completion::Outcome::kLost);
  EXPECT_EQ(orders.Run({orders.Launch(kSession, 1, 0, {1}, {1})}).outcome,
            Completion::Outcome::kDone);
}

TEST_F(Cuda, ADeviceThatVanishesIsLostAndTheOtherWorksOn) {
  RecordingSink other_sink;
  auto second = OpenStandIns(other_sink, 1, 0, "stand-in 75");
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  PolledDevice other(std::move(second->front()));
  Orders orders(other, other_sink);
  ASSERT_TRUE(other.OpenSession(kSession, {.memory_bytes = 1 << 20}).ok());
  ASSERT_TRUE(orders.Load(kSession, 1, Ptx(kPlain)).status.ok());
  Ticket running;
  {
    const test::HeldStreams hold;
    running = orders.Start({orders.Launch(kSession, 1, 0, {1}, {1})});
    test::Vanish(1);
  }
  const Completion lost = other_sink.Finished(running);
  EXPECT_EQ(lost.outcome, Completion::Outcome::kLost);
  EXPECT_THAT(lost.error.message(), HasSubstr("cudaErrorDevicesUnavailable (46)"));
  EXPECT_EQ(orders.Run({orders.Launch(kSession, 1, 0, {1}, {1})}).outcome,
            Completion::Outcome::kLost);
  EXPECT_EQ(other_sink.losses(), 1);
  EXPECT_TRUE(orders.Close(kSession).ok());
  EXPECT_EQ(orders_->Run({Who({4})}).outcome, Completion::Outcome::kDone);
}

TEST_F(Cuda, CopiesLargerThanTheStagingGoThroughToo) {
  constexpr std::size_t kWords = (80u << 20) / 4;
  ASSERT_TRUE(device_->OpenSession({.slot = 1, .serial = 2}, {.memory_bytes = 100 << 20}).ok());
  const SessionId large{.slot = 1, .serial = 2};
  ASSERT_TRUE(orders_->Allocate(large, 1, kWords * 4).ok());
  std::vector<std::uint32_t> words(kWords);
  std::iota(words.begin(), words.end(), 7u);
  EXPECT_EQ(orders_->Write(large, 1, words).outcome, Completion::Outcome::kDone);
  EXPECT_EQ(orders_->Read<std::uint32_t>(large, 1, kWords), words);
}

TEST_F(Cuda, GivesBackWhatItMade) {
  orders_->Run({Who({4})});
  orders_.reset();
  device_.reset();
  const test::LiveObjects alive = test::StillAlive();
  EXPECT_EQ(alive.streams, 0u);
  EXPECT_EQ(alive.events, 0u);
  EXPECT_EQ(alive.libraries, 0u);
  EXPECT_EQ(alive.allocations, 0u);
  EXPECT_EQ(alive.pinned, 0u);
}

class CudaProbe : public ::testing::Test {
 protected:
  // What opening says with that driver.
  static Status Open(test::FakeDriver driver, const std::string& select = "", int count = 1) {
    test::InstallDriver(std::move(driver));
    RecordingSink sink;
    return OpenStandIns(sink, count, 0, select).status();
  }
  void TearDown() override { test::InstallDriver(test::DefaultDriver()); }
};

TEST_F(CudaProbe, SaysWhatIsMissing) {
  test::FakeDriver none{.version = 0, .stub = false, .gpus = {}};
  ExpectRefused(Open(none), StatusCode::kUnavailable, reason::kUnknownDevice,
                "no NVIDIA driver is installed");
  test::FakeDriver old = test::DefaultDriver();
  old.version = 12'040;
  ExpectRefused(Open(old), StatusCode::kUnavailable, reason::kUnknownDevice, "CUDA 12.4");
  test::FakeDriver stub = test::DefaultDriver();
  stub.stub = true;
  ExpectRefused(Open(stub), StatusCode::kUnavailable, reason::kUnknownDevice, "stub");
  test::FakeDriver empty{.version = 13'000, .stub = false, .gpus = {}};
  ExpectRefused(Open(empty), StatusCode::kUnavailable, reason::kUnknownDevice, "finds no GPU");
}

TEST_F(CudaProbe, AnUuidMayBeWrittenInCapitals) {
  RecordingSink sink;
  test::InstallDriver(test::DefaultDriver());
  auto both = OpenStandIns(sink, 2);
  ASSERT_TRUE(both.ok()) << both.status().ToString();
  std::string uuid = (*both)[1]->info().uuid;
  std::transform(uuid.begin(), uuid.end(), uuid.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  const auto found = OpenStandIns(sink, 1, 0, uuid);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ((*found)[0]->info().name, "stand-in 75");
}

TEST_F(CudaProbe, AVanishedDeviceIsPassedOver) {
  test::FakeDriver driver = test::DefaultDriver();
  driver.gpus[1].vanished = true;
  EXPECT_TRUE(Open(driver, "", 2).ok());
  ExpectRefused(Open(driver, "stand-in 75"), StatusCode::kNotFound, reason::kUnknownDevice,
                "stand-in 90");
  driver.gpus[0].vanished = true;
  ExpectRefused(Open(driver), StatusCode::kUnavailable, reason::kUnknownDevice, "no GPU answers");
}

TEST_F(CudaProbe, TakesTheDeviceThatIsNamed) {
  EXPECT_TRUE(Open(test::DefaultDriver(), "stand-in 75").ok());
  EXPECT_TRUE(Open(test::DefaultDriver(), "Stand-In 75, STAND-IN 90").ok());
  EXPECT_TRUE(Open(test::DefaultDriver(), "stand-in, stand-in").ok());
  ExpectRefused(Open(test::DefaultDriver(), "stand-in 75, stand-in 75"), StatusCode::kNotFound,
                reason::kUnknownDevice, "no (further) GPU");
}

}  // namespace
}  // namespace gpusched::device
