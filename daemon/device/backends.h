// The one table of backends: from a name in the configuration to open devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "gpusched/status.h"

namespace gpusched::device {

struct DeviceOptions {
  std::string kind = "auto";  // "auto", "cuda", "opencl", "virtual"; auto never takes virtual
                              // "KIND:NAMES" also selects
  int count = 1;              // devices to open, 1..8; ignored where `select` names them
  std::string cost_file{};    // virtual: the cost file; "": the costs built in
  std::uint64_t memory_bytes =
      0;  // what sessions of one device may allocate together; 0: the device's own
  std::string cache_dir{};       // opencl: where the compiler keeps what it built; made if missing
  int spare_units = 0;           // opencl: compute units left to the host; only of devices that can
  bool priority_streams = true;  // cuda: a stream for each class of priority; false: one for all
  // Which devices to open, in this order, comma-separated; "": the first `count`, GPUs before CPUs.
  // An item is a uuid, or for real devices a part of the device's or platform's name.
  std::string select{};
};

inline constexpr int kMaxDevices = 8;

// Called once per device, in the order of the result, when its info is known and before the device
// can report anything. The sink outlives the device.
using SinkFactory = std::function<CompletionSink*(std::size_t index, const DeviceInfo&)>;

// Opens all or nothing. Call it early in main, before other threads exist: a backend may have to
// set environment variables for its driver.
//   INVALID_ARGUMENT (BAD_CONFIGURATION)  an unknown kind (the message lists what there is), a
//   count
//                                         out of range, errors in the cost file (all at once)
//   NOT_FOUND (UNKNOWN_DEVICE)            `select` names something that is not there
//   UNAVAILABLE (UNKNOWN_DEVICE)          no driver or no device; the message says what to install
// `passed_over`, if given, tells which kinds "auto" could not open before the one it took, and why.
Result<std::vector<std::unique_ptr<Device>>> OpenDevices(const DeviceOptions&, const SinkFactory&,
                                                         std::string* passed_over = nullptr);

// The kinds this build has, for messages and help: {"cuda", "opencl", "virtual"}.
std::vector<std::string> BackendKinds();

}  // namespace gpusched::device
