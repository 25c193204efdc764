// Finds the CUDA devices of this machine, or says in words why there is none, and opens those asked
// for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/backends.h"
#include "device/device.h"
#include "gpusched/status.h"

namespace gpusched::device {

struct CudaOptions {
  int count = 1;
  std::uint64_t memory_bytes = 0;  // 0: what the device has free
  std::vector<std::string>
      select{};                  // uuids or parts of names, in any case; empty: the first `count`
  bool priority_streams = true;  // a stream for each class of priority; false: one for all
};

// See OpenDevices. UNAVAILABLE tells apart: no driver, a stub library, a driver that is too old, no
// device, and devices hidden by CUDA_VISIBLE_DEVICES.
Result<std::vector<std::unique_ptr<Device>>> OpenCuda(const CudaOptions& options,
                                                      const SinkFactory& sinks);

}  // namespace gpusched::device
