// A virtual module: a short text that names kernels with the time they take.
//
//   # One kernel a line; what stands in brackets may be left out.
//   kernel NAME time_per_block=10us [cuttable=yes|no] [parameters=buffer,u32,f32,local]
//               [scale=INDEX] [fail=no|yes]                          (all on one line)
//
// parameters: buffer, local, u8 u16 u32 u64 i32 i64 f32 f64, or bytesN (N in 1..4096), in order.
// scale: the index, from 0, of an unsigned parameter whose value multiplies time_per_block.
// fail: launches of the kernel take their time and then fail, for trying out failures.
// Defaults: cuttable=yes, no parameters, no scale, fail=no.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "gpusched/policy/types.h"
#include "gpusched/status.h"

namespace gpusched::device {

struct VirtualKernel {
  Duration time_per_block{0};
  std::optional<std::uint32_t> scale{};  // index of a parameter of 1, 2, 4 or 8 bytes
  bool fails = false;
};

struct VirtualModule {
  ModuleInfo info;
  std::vector<VirtualKernel> kernels;  // as info.kernels
};

// INVALID_ARGUMENT (BAD_MODULE) with every error and its line.
Result<VirtualModule> ParseVirtualModule(std::string_view text);

// The time `blocks` blocks ask for, at most kLongestWork. The arguments match the kernel's
// parameters.
Duration LaunchWork(const VirtualKernel&, const std::vector<Argument>& arguments,
                    std::uint64_t blocks);

}  // namespace gpusched::device
