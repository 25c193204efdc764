// The OpenCL device of this machine for a test, with a compiler cache of the test process's own.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/device_harness.h"
#include "device/backends.h"

namespace gpusched::device {

// Removed when the process ends.
class CacheDirectory {
 public:
  CacheDirectory()
      : path_(std::filesystem::temp_directory_path() /
              ("gpusched-opencl-test-" + std::to_string(getpid()))) {}
  ~CacheDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// nullptr where no driver is installed; memory_bytes 0: the device's own.
inline std::unique_ptr<Device> OpenClOfThisMachine(CompletionSink& sink,
                                                   std::uint64_t memory_bytes) {
  static const CacheDirectory cache;
  DeviceOptions options;
  options.kind = "opencl";
  options.memory_bytes = memory_bytes;
  options.cache_dir = cache.path();
  auto devices = OpenDevices(options, [&](std::size_t, const DeviceInfo&) { return &sink; });
  if (!devices) {
    if (devices.status().code() == StatusCode::kUnavailable) return nullptr;
    throw std::runtime_error(devices.status().ToString());
  }
  return std::move(devices->front());
}

inline Image Source(std::string text) {
  return {.format = Image::Format::kOpenClC, .bytes = std::move(text)};
}

}  // namespace gpusched::device
