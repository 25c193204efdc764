// What a cubin tells of its kernels: parameter layouts, block limits, static shared memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "gpusched/status.h"

namespace gpusched::device::ptx {

struct CubinParameter {
  std::uint32_t offset = 0, size = 0;
};

struct CubinKernel {
  std::string name;
  std::vector<CubinParameter> parameters;  // in order
  bool has_layout = false;  // the cubin tells parameters; without, there may be some all the same
  Dim3 required_block{0, 0, 0};
  std::uint64_t max_block_threads = 0;    // 0: not said
  std::uint64_t static_shared_bytes = 0;  // with what the system keeps: 1 KiB from sm_90 on
};

struct CubinInfo {
  std::uint32_t sm = 0;  // 75, 90, 100; 0: not said in a form we know
  std::vector<CubinKernel> kernels;
};

// INVALID_ARGUMENT (BAD_MODULE) says what does not add up.
Result<CubinInfo> ParseCubin(std::string_view bytes);

}  // namespace gpusched::device::ptx
