// Finds the OpenCL devices of this machine and opens those asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/backends.h"
#include "device/device.h"
#include "gpusched/status.h"

namespace gpusched::device {

struct OpenClOptions {
  int count = 1;
  std::uint64_t memory_bytes = 0;     // 0: what the device has; never more than it has
  std::string cache_dir{};            // "": the driver's default
  int spare_units = 0;                // compute units left to the host
  std::vector<std::string> select{};  // uuids or parts of names; empty: the first `count`
};

// See OpenDevices. Sets environment variables for PoCL and loads every installed driver.
Result<std::vector<std::unique_ptr<Device>>> OpenOpenCl(const OpenClOptions&, const SinkFactory&);

}  // namespace gpusched::device
