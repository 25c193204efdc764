// Opening devices: the kinds there are, how many, which and in which order.
#include "device/backends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/device_harness.h"
#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Backends : public ::testing::Test {
 protected:
  Status Refusal(DeviceOptions options) { return Open(options).status(); }
  Result<std::vector<std::unique_ptr<Device>>> Open(DeviceOptions options) {
    return OpenDevices(options, [this](std::size_t index, const DeviceInfo& info) {
      EXPECT_EQ(index, seen_.size());
      seen_.push_back(info.uuid);
      return &sink_;
    });
  }
  RecordingSink sink_;
  std::vector<std::string> seen_;
};

TEST_F(Backends, AnUnknownKindIsRefusedWithWhatThereIs) {
  const Status status = Refusal({.kind = "quantum"});
  EXPECT_EQ(status.reason(), reason::kBadConfiguration);
  EXPECT_THAT(status.message(), HasSubstr("quantum"));
  EXPECT_THAT(status.message(), HasSubstr("auto"));
  for (const std::string& kind : BackendKinds()) EXPECT_THAT(status.message(), HasSubstr(kind));
  EXPECT_THAT(BackendKinds(), ::testing::Contains("virtual"));
}

TEST_F(Backends, OpensOneToEightVirtualDevices) {
  EXPECT_EQ(Refusal({.kind = "virtual", .count = 0}).reason(), reason::kBadConfiguration);
  EXPECT_EQ(Refusal({.kind = "virtual", .count = 9}).reason(), reason::kBadConfiguration);
  const auto devices = Open({.kind = "virtual", .count = 8, .memory_bytes = 1 << 20});
  ASSERT_TRUE(devices) << devices.status().ToString();
  ASSERT_EQ(devices->size(), 8u);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ((*devices)[i]->info().uuid, "virtual-" + std::to_string(i));
    EXPECT_EQ((*devices)[i]->info().memory_bytes, 1u << 20);
  }
  EXPECT_EQ(seen_.size(), 8u);
}

TEST_F(Backends, SelectsDevicesInTheOrderGiven) {
  const auto devices = Open({.kind = "virtual", .select = "virtual-3, virtual-0,virtual-7"});
  ASSERT_TRUE(devices) << devices.status().ToString();
  EXPECT_THAT(seen_, ElementsAre("virtual-3", "virtual-0", "virtual-7"));
  EXPECT_EQ((*devices)[0]->info().uuid, "virtual-3");
  EXPECT_EQ(Refusal({.kind = "virtual", .select = "virtual-8"}).reason(), reason::kUnknownDevice);
  EXPECT_EQ(Refusal({.kind = "virtual", .select = "virtual-1,virtual-1"}).reason(),
            reason::kBadConfiguration);
}

TEST_F(Backends, ABrokenCostFileOpensNothing) {
  EXPECT_EQ(Refusal({.kind = "virtual", .cost_file = "/nowhere.yaml"}).reason(),
            reason::kBadConfiguration);
  EXPECT_TRUE(seen_.empty());
}

}  // namespace
}  // namespace gpusched::device
