// The virtual device beside the contract of every device, and its own promise: exact times.
#include "device/virtual/virtual_device.h"

#include "conformance/device_conformance.h"

namespace gpusched::device {
namespace {

using namespace std::chrono_literals;

constexpr Costs kFree{.launch_gap = 0ns,
                      .chunk = 0ns,
                      .session_switch = 0ns,
                      .noise_ppb = 0,
                      .outlier_ppb = 0,
                      .copy_bandwidth = 0};

Image Text(std::string text) {
  return {.format = Image::Format::kVirtual, .bytes = std::move(text)};
}

Subject VirtualSubject(std::string name, const Costs& costs) {
  return {.name = std::move(name),
          .open =
              [costs](CompletionSink& sink, std::uint64_t memory_bytes) {
                return std::make_unique<VirtualDevice>(VirtualDeviceInfo(0, memory_bytes), costs, 0,
                                                       sink);
              },
          .good = Text("kernel plain time_per_block=0\n"
                       "kernel touch time_per_block=5us parameters=buffer,u32\n"),
          .broken = Text("kernel plain time_per_block=0\nkernel touch time_per_block=fast\n"),
          .foreign = {.format = Image::Format::kOpenClC, .bytes = "kernel void plain() {}"}};
}

INSTANTIATE_TEST_SUITE_P(Virtual, DeviceConformance,
                         ::testing::Values(VirtualSubject("default_costs", {}),
                                           VirtualSubject("no_costs", kFree)),
                         [](const auto& subject) { return subject.param.name; });

class VirtualDeviceTimes : public ::testing::Test {
 protected:
  static constexpr SessionId kOne{.slot = 0, .serial = 1};
  static constexpr SessionId kTwo{.slot = 1, .serial = 2};

  void Make(const Costs& costs) {
    device_ = std::make_unique<VirtualDevice>(VirtualDeviceInfo(3, 0), costs, 0, sink_);
    orders_ = std::make_unique<Orders>(*device_, sink_);
    for (const SessionId session : {kOne, kTwo}) {
      ASSERT_TRUE(device_->OpenSession(session, {.memory_bytes = 1 << 30}).ok());
      ASSERT_TRUE(orders_
                      ->Load(session, 1,
                             Text("kernel work time_per_block=100us parameters=u32 scale=0\n"
                                  "kernel none time_per_block=0\n"
                                  "kernel bad time_per_block=100us fail=yes\n"))
                      .status.ok());
    }
  }
  Command Work(SessionId session, std::uint32_t scale, Time submitted, Dim3 grid = {}) {
    return {orders_->Launch(session, 1, 0, grid, {}, {Value(scale)}), submitted};
  }

  RecordingSink sink_;
  std::unique_ptr<VirtualDevice> device_;
  std::unique_ptr<Orders> orders_;
};

TEST_F(VirtualDeviceTimes, AreExactWhateverTheTimerDoes) {
  Make({.noise_ppb = 0, .outlier_ppb = 0});
  const Time now = DeviceNow();
  const Ticket first = orders_->Start(Work(kOne, 3, now));
  const Ticket second = orders_->Start(Work(kOne, 1, now + 1us));
  const Ticket third = orders_->Start(Work(kTwo, 1, now + 2us));
  Command chunk = Work(kTwo, 1, now + 3us, {.x = 4, .y = 2});
  std::get<LaunchCommand>(chunk.what).first = 2;
  std::get<LaunchCommand>(chunk.what).count = 3;
  const Ticket fourth = orders_->Start(chunk);
  EXPECT_EQ(sink_.Finished(first).started, now);
  EXPECT_EQ(sink_.Finished(first).ended, now + 308us);
  EXPECT_EQ(sink_.Finished(second).started, now + 308us);
  EXPECT_EQ(sink_.Finished(second).ended, now + 416us);
  EXPECT_EQ(sink_.Finished(third).ended, now + 544us);   // + the switch
  EXPECT_EQ(sink_.Finished(fourth).ended, now + 872us);  // three blocks and the chunk
  EXPECT_EQ(sink_.too_early(), 0);
}

TEST_F(VirtualDeviceTimes, ACommandOfLengthZeroCompletesWithinStart) {
  Make(kFree);
  const auto finished = [&] { return sink_.completions().size(); };
  orders_->Start({orders_->Launch(kOne, 1, 1, {.x = 1'000}, {})});
  EXPECT_EQ(finished(), 1u);
  ASSERT_TRUE(orders_->Allocate(kOne, 1, 1'000).ok());
  orders_->Start(
      {FillCommand{.session = kOne, .buffer = 1, .value = 4, .count = 1'000, .total = 1'000}});
  EXPECT_EQ(finished(), 2u);
  const Completion last = sink_.completions().back();
  EXPECT_EQ(last.started, last.ended);
}

TEST_F(VirtualDeviceTimes, ACommandOfLengthZeroWaitsForTheOneBeforeIt) {
  Make(kFree);
  const Time now = DeviceNow();
  const Ticket work = orders_->Start(Work(kOne, 20, now));
  const Ticket nothing = orders_->Start({orders_->Launch(kOne, 1, 1, {}, {}), now});
  EXPECT_EQ(sink_.Finished(nothing).ended, now + 2ms);
  EXPECT_EQ(sink_.completions().front().ticket, work);
}

TEST_F(VirtualDeviceTimes, CopiesTakeBytesByBandwidth) {
  Make({.noise_ppb = 0, .outlier_ppb = 0, .copy_bandwidth = 1'000'000'000});
  ASSERT_TRUE(orders_->Allocate(kOne, 1, 1 << 20).ok());
  const Time now = DeviceNow();
  const Completion fill = orders_->Run(
      {FillCommand{.session = kOne, .buffer = 1, .value = 1, .count = 500'000, .total = 500'000},
       now});
  EXPECT_EQ(fill.ended - fill.started, 508us);
}

TEST_F(VirtualDeviceTimes, AKernelMayFailAfterItsTime) {
  Make({.noise_ppb = 0, .outlier_ppb = 0});
  const Completion failed = orders_->Run({orders_->Launch(kOne, 1, 2, {.x = 2}, {})});
  EXPECT_EQ(failed.outcome, Completion::Outcome::kFailed);
  EXPECT_EQ(failed.error.reason(), reason::kDeviceFailed);
  EXPECT_EQ(failed.ended - failed.started, 208us);
  EXPECT_EQ(orders_->Run(Work(kOne, 1, DeviceNow())).outcome, Completion::Outcome::kDone);
}

TEST_F(VirtualDeviceTimes, StartsFromWithinAReportAreKept) {
  // A sink that, like an executor, starts the next command from within the report of the last.
  struct Chain final : CompletionSink {
    void Post(Completion completion) override {
      if (++finished < 200) {
        device->Start(Ticket{std::uint64_t(completion.ticket) + 1}, {*launch, DeviceNow()});
      }
      inner.Post(std::move(completion));
    }
    void Post(Prepared prepared) override { inner.Post(std::move(prepared)); }
    void Post(Lost) override {}
    void Post(Restored) override {}
    RecordingSink inner;
    VirtualDevice* device = nullptr;
    const LaunchCommand* launch = nullptr;
    int finished = 0;
  } chain;
  VirtualDevice device(VirtualDeviceInfo(0, 0), {.noise_ppb = 0}, 0, chain);
  Orders orders(device, chain.inner);
  ASSERT_TRUE(device.OpenSession(kOne, {}).ok());
  ASSERT_TRUE(orders.Load(kOne, 1, Text("kernel work time_per_block=10us\n")).status.ok());
  const LaunchCommand launch = orders.Launch(kOne, 1, 0, {}, {});
  chain.device = &device;
  chain.launch = &launch;
  device.Start(Ticket{1'000}, {launch, DeviceNow()});
  EXPECT_EQ(chain.inner.Finished(Ticket{1'199}).outcome, Completion::Outcome::kDone);
  EXPECT_EQ(chain.inner.too_early(), 0);
}

}  // namespace
}  // namespace gpusched::device
