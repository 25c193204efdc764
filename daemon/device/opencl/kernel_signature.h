// What the compiler says a kernel takes: its parameters' kinds and sizes, its block, its memory.
#pragma once

#include <CL/cl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "gpusched/status.h"

namespace gpusched::device {

// A value parameter whose size the type's name does not tell: a struct, an enum, a typedef.
struct UnknownType {
  std::size_t parameter = 0;
  std::string name;
};

struct KernelSignature {
  KernelInfo info;
  std::vector<UnknownType> unknown;  // info.parameters[parameter].size is still 0
};

// UNIMPLEMENTED if the kernel takes what no session can have: images, samplers, pipes, queues.
Result<KernelSignature> ReadSignature(cl_kernel, cl_device_id);

// "float3" -> 16, "uchar" -> 1; nothing for types that are not OpenCL C's own.
std::optional<std::uint32_t> BuiltinSize(std::string_view type_name);

}  // namespace gpusched::device
