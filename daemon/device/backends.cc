// The table of backends and the reading of what the configuration says about them.
#include "device/backends.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>

#include "device/virtual/costs.h"
#include "device/virtual/virtual_device.h"
#include "gpusched/reasons.h"
#ifdef GPUSCHED_HAVE_CUDA
#include "device/cuda/platform.h"
#endif
#ifdef GPUSCHED_HAVE_OPENCL
#include "device/opencl/platform.h"
#endif

namespace gpusched::device {
namespace {

using Devices = std::vector<std::unique_ptr<Device>>;

std::vector<std::string> SplitSelection(const std::string& select) {
  std::vector<std::string> items;
  std::size_t begin = 0;
  while (begin < select.size()) {
    const std::size_t end = std::min(select.find(',', begin), select.size());
    const std::size_t first = select.find_first_not_of(' ', begin);
    if (first < end) {
      const std::size_t last = select.find_last_not_of(' ', end - 1);
      items.push_back(select.substr(first, last - first + 1));
    }
    begin = end + 1;
  }
  return items;
}

// Device numbers 0..7 as `select` names them, or the first `count`.
Result<std::vector<int>> VirtualIndices(const DeviceOptions& options) {
  std::vector<int> indices;
  for (const std::string& item : SplitSelection(options.select)) {
    int index = 0;
    while (index < kMaxDevices && VirtualDeviceInfo(index, 0).uuid != item) ++index;
    if (index == kMaxDevices) {
      return Status(StatusCode::kNotFound, reason::kUnknownDevice,
                    "there is no virtual device '" + item + "'; there are virtual-0 to virtual-" +
                        std::to_string(kMaxDevices - 1));
    }
    if (std::find(indices.begin(), indices.end(), index) != indices.end()) {
      return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration,
                    "device '" + item + "' is selected twice");
    }
    indices.push_back(index);
  }
  for (int index = 0; options.select.empty() && index < options.count; ++index) {
    indices.push_back(index);
  }
  return indices;
}

Result<Devices> OpenVirtual(const DeviceOptions& options, const SinkFactory& sinks) {
  const Result<Costs> costs = LoadCosts(options.cost_file);
  if (!costs) return costs.status();
  const Result<std::vector<int>> indices = VirtualIndices(options);
  if (!indices) return indices.status();
  Devices devices;
  for (const int index : *indices) {
    DeviceInfo info = VirtualDeviceInfo(index, options.memory_bytes);
    CompletionSink* sink = sinks(devices.size(), info);
    devices.push_back(std::make_unique<VirtualDevice>(std::move(info), *costs, index, *sink));
  }
  return devices;
}

#ifdef GPUSCHED_HAVE_CUDA
Result<Devices> OpenRealCuda(const DeviceOptions& options, const SinkFactory& sinks) {
  return OpenCuda({.count = options.count,
                   .memory_bytes = options.memory_bytes,
                   .select = SplitSelection(options.select),
                   .priority_streams = options.priority_streams},
                  sinks);
}
#endif

#ifdef GPUSCHED_HAVE_OPENCL
Result<Devices> OpenRealOpenCl(const DeviceOptions& options, const SinkFactory& sinks) {
  OpenClOptions wanted;
  wanted.count = options.count;
  wanted.memory_bytes = options.memory_bytes;
  wanted.cache_dir = options.cache_dir;
  wanted.spare_units = options.spare_units;
  wanted.select = SplitSelection(options.select);
  return OpenOpenCl(wanted, sinks);
}
#endif

struct Backend {
  std::string_view kind;
  bool automatic;  // "auto" may take it
  Result<Devices> (*open)(const DeviceOptions&, const SinkFactory&);
};

// In the order in which "auto" tries them.
constexpr Backend kBackends[] = {
#ifdef GPUSCHED_HAVE_CUDA
    {"cuda", true, OpenRealCuda},
#endif
#ifdef GPUSCHED_HAVE_OPENCL
    {"opencl", true, OpenRealOpenCl},
#endif
    {"virtual", false, OpenVirtual},
};

// The first backend that has devices; what each of the others said, if none has.
Result<Devices> OpenAutomatic(const DeviceOptions& options, const SinkFactory& sinks,
                              std::string& why) {
  for (const Backend& backend : kBackends) {
    if (!backend.automatic) continue;
    Result<Devices> devices = backend.open(options, sinks);
    if (devices || devices.status().code() != StatusCode::kUnavailable) return devices;
    why += std::string(backend.kind) + ": " + devices.status().message() + "; ";
  }
  return Status(StatusCode::kUnavailable, reason::kUnknownDevice,
                "no real device: " + (why.empty() ? "this build has no backend for one; " : why) +
                    "--device=virtual runs everything without one");
}

Status CheckOptions(const DeviceOptions& options) {
  if (options.count >= 1 && options.count <= kMaxDevices) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration,
                "the number of devices is " + std::to_string(options.count) + "; it must be 1 to " +
                    std::to_string(kMaxDevices));
}

// "opencl:pocl" is kind "opencl" with "pocl" selected.
DeviceOptions SplitKind(DeviceOptions options) {
  const std::size_t colon = options.kind.find(':');
  if (colon == std::string::npos) return options;
  options.select = options.kind.substr(colon + 1);
  options.kind.resize(colon);
  return options;
}

Result<Devices> Dispatch(const DeviceOptions& asked, const SinkFactory& sinks,
                         std::string& passed_over) {
  const DeviceOptions options = SplitKind(asked);
  if (options.kind == "auto") return OpenAutomatic(options, sinks, passed_over);
  std::string kinds = "auto";
  for (const Backend& backend : kBackends) {
    if (backend.kind == options.kind) return backend.open(options, sinks);
    kinds += ", " + std::string(backend.kind);
  }
  return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration,
                "unknown kind of device '" + options.kind + "'; this build has " + kinds);
}

}  // namespace

Result<Devices> OpenDevices(const DeviceOptions& options, const SinkFactory& sinks,
                            std::string* passed_over) {
  std::string nobody_asks;
  Status status = CheckOptions(options);
  if (!status.ok()) return status;
  try {
    return Dispatch(options, sinks, passed_over != nullptr ? *passed_over : nobody_asks);
  } catch (const std::system_error& error) {  // no thread, no descriptor
    return Status(StatusCode::kResourceExhausted, reason::kTooMany,
                  std::string("cannot open the device: ") + error.what() +
                      "; raise the limits on threads and descriptors");
  }
}

std::vector<std::string> BackendKinds() {
  std::vector<std::string> kinds;
  for (const Backend& backend : kBackends) kinds.emplace_back(backend.kind);
  return kinds;
}

}  // namespace gpusched::device
