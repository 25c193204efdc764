// The rules a launch must keep, each refused in the words of who wrote the launch.
#include "executor/signature.h"

#include <algorithm>
#include <string>

#include "executor/limits.h"
#include "gpusched/reasons.h"
#include "gpusched/units.h"

namespace gpusched::executor {
namespace {

std::string Show(device::Dim3 d) {
  return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
}

Status Bad(std::string_view why, std::string message) {
  return Status(StatusCode::kInvalidArgument, why, std::move(message));
}

std::string_view KindOf(const device::Argument& argument) {
  if (std::holds_alternative<device::BufferArgument>(argument)) return "a buffer";
  if (std::holds_alternative<device::LocalArgument>(argument)) return "local memory";
  return "a value";
}

std::string_view KindOf(device::Parameter::Kind kind) {
  switch (kind) {
    case device::Parameter::Kind::kBuffer: return "a buffer";
    case device::Parameter::Kind::kValue: return "a value";
    case device::Parameter::Kind::kLocal: return "local memory";
  }
  return "";
}

Status CheckArgument(const device::Argument& argument, const device::Parameter& parameter,
                     const std::string& name) {
  // Machine code does not tell an address from a number as wide.
  const auto* number = std::get_if<device::ValueArgument>(&argument);
  if (number != nullptr && parameter.kind == device::Parameter::Kind::kBuffer &&
      parameter.size != 0 && number->size() == parameter.size) {
    return Status::Ok();
  }
  if (KindOf(argument) != KindOf(parameter.kind)) {
    return Bad(reason::kArgumentKind, name + " is " + std::string(KindOf(parameter.kind)) +
                                          ", it was given " + std::string(KindOf(argument)));
  }
  if (const auto* value = std::get_if<device::ValueArgument>(&argument);
      value != nullptr && parameter.size != 0 && value->size() != parameter.size) {
    return Bad(reason::kArgumentSize, name + " is " + std::to_string(parameter.size) +
                                          " bytes wide, it was given " +
                                          std::to_string(value->size()));
  }
  return Status::Ok();
}

Status CheckLocalMemory(const Launch& launch, const device::KernelInfo& kernel,
                        const device::DeviceInfo& device) {
  std::uint64_t left = device.local_memory_bytes;
  const auto take = [&left](std::uint64_t bytes) {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  };
  bool fits = take(kernel.static_local_bytes) && take(launch.dynamic_local_bytes);
  for (const device::Argument& argument : launch.arguments) {
    const auto* local = std::get_if<device::LocalArgument>(&argument);
    if (local == nullptr) continue;
    if (local->bytes == 0) {
      return Bad(reason::kLocalMemory, "kernel '" + kernel.name + "': zero bytes of local memory");
    }
    fits = fits && take(local->bytes);
  }
  if (fits) return Status::Ok();
  return Bad(reason::kLocalMemory,
             "kernel '" + kernel.name + "' asks for more local memory than the " +
                 FormatBytes(device.local_memory_bytes) + " a block has on this device");
}

// Whole warps of any GPU, few enough for its registers; on a CPU enough to hide what a block costs.
constexpr std::uint64_t kThreadsPerBlock = 256;
// Smaller blocks leave a GPU's warps unfilled.
constexpr std::uint64_t kLeastThreadsPerBlock = 64;
// A launch of so many for each compute unit can be cut, and its last ones leave no unit idle long.
constexpr std::uint64_t kBlocksPerUnit = 8;
// CUDA's limit along z.
constexpr std::uint64_t kDeepestBlock = 64;

std::uint32_t LargestDivisor(std::uint32_t of, std::uint64_t most) {
  auto divisor = static_cast<std::uint32_t>(std::min<std::uint64_t>(of, most));
  while (divisor > 1 && of % divisor != 0) --divisor;
  return divisor;
}

Status CheckOffset(const Launch& launch, const device::KernelInfo& kernel) {
  if (!launch.range) return Status::Ok();
  const device::Dim3 offset = launch.range->offset;
  const std::uint32_t greatest = std::max({offset.x, offset.y, offset.z});
  if (greatest == 0 || greatest < kernel.offset_limit) return Status::Ok();
  const std::string begin =
      "kernel '" + kernel.name + "': an offset of " + Show(offset) + " threads; ";
  if (kernel.offset_limit == 0) {
    return Status(StatusCode::kUnimplemented, reason::kBadOffset,
                  begin + "launches on this device have none, pass it as an argument");
  }
  return Bad(reason::kBadOffset, begin + "it must be below " + std::to_string(kernel.offset_limit) +
                                     " along each axis, pass it as an argument");
}

Status CheckBlock(const Launch& launch, const device::KernelInfo& kernel) {
  const device::Dim3 wanted = kernel.required_block;
  if (wanted.x != 0 &&
      (wanted.x != launch.block.x || wanted.y != launch.block.y || wanted.z != launch.block.z)) {
    return Bad(reason::kBadBlock, "kernel '" + kernel.name + "' requires blocks of " +
                                      Show(wanted) + ", not " + Show(launch.block));
  }
  if (device::Volume(launch.block) > kernel.max_block_threads) {
    return Bad(reason::kBadBlock, "a block of " + Show(launch.block) + " has more than the " +
                                      std::to_string(kernel.max_block_threads) +
                                      " threads kernel '" + kernel.name + "' can have");
  }
  return Status::Ok();
}

}  // namespace

device::Dim3 ChooseBlock(device::Dim3 threads, const device::KernelInfo& kernel,
                         const device::DeviceInfo& device) {
  if (kernel.required_block.x != 0) return kernel.required_block;
  const std::uint64_t units = std::max(device.compute_units, 1u);
  const std::uint64_t fair = std::clamp<std::uint64_t>(
      device::Volume(threads) / units / kBlocksPerUnit, kLeastThreadsPerBlock, kThreadsPerBlock);
  const std::uint64_t most = std::max<std::uint64_t>(std::min(fair, kernel.max_block_threads), 1);
  const std::uint32_t x = LargestDivisor(threads.x, most);
  const std::uint32_t y = LargestDivisor(threads.y, most / x);
  const std::uint32_t z = LargestDivisor(threads.z, std::min(most / x / y, kDeepestBlock));
  return {x, y, z};
}

Status ShapeBlocks(Launch& launch, device::Dim3 block, std::string_view whose) {
  const device::Dim3 threads = launch.range->threads;
  if (threads.x == 0 || threads.y == 0 || threads.z == 0) {
    return Bad(reason::kBadGrid,
               "a launch of " + Show(threads) + " threads has none; give each axis at least 1");
  }
  const auto divides = [](std::uint32_t part, std::uint32_t whole) {
    return part != 0 && whole % part == 0;
  };
  if (!divides(block.x, threads.x) || !divides(block.y, threads.y) ||
      !divides(block.z, threads.z)) {
    return Bad(reason::kBadBlock,
               "a block of " + Show(block) + " threads" + std::string(whose) +
                   " does not divide the " + Show(threads) +
                   " of the launch; launch more, and let those beyond the end do nothing");
  }
  launch.block = block;
  launch.grid = {threads.x / block.x, threads.y / block.y, threads.z / block.z};
  return Status::Ok();
}

Status CheckShape(const Launch& launch, const device::DeviceInfo& device) {
  const std::uint64_t blocks = device::Volume(launch.grid);
  const std::uint64_t threads = device::Volume(launch.block);
  if (blocks == 0) {
    return Bad(reason::kBadGrid,
               "a grid of " + Show(launch.grid) + " blocks is empty or has more than 2^63 of them");
  }
  if (threads == 0 || threads > device.max_block_threads) {
    return Bad(reason::kBadBlock, "a block of " + Show(launch.block) +
                                      " threads; it must have 1 to " +
                                      std::to_string(device.max_block_threads));
  }
  if (blocks > (std::uint64_t{1} << 63) / threads) {
    return Bad(reason::kBadGrid, "a grid of " + Show(launch.grid) + " blocks of " +
                                     Show(launch.block) + " has more than 2^63 threads");
  }
  if (launch.arguments.size() > kArgumentsPerLaunch) {
    return Bad(reason::kTooMany, std::to_string(launch.arguments.size()) +
                                     " arguments; a launch may have " +
                                     std::to_string(kArgumentsPerLaunch));
  }
  for (const device::Argument& argument : launch.arguments) {
    const auto* value = std::get_if<device::ValueArgument>(&argument);
    if (value == nullptr || value->size() <= kValueBytes) continue;
    return Bad(reason::kArgumentSize, "an argument of " + std::to_string(value->size()) +
                                          " bytes; use a buffer beyond " +
                                          std::to_string(kValueBytes));
  }
  return Status::Ok();
}

Status CheckSignature(const Launch& launch, const device::KernelInfo& kernel,
                      const device::DeviceInfo& device) {
  if (launch.arguments.size() != kernel.parameters.size()) {
    return Bad(reason::kArgumentCount,
               "kernel '" + kernel.name + "' takes " + std::to_string(kernel.parameters.size()) +
                   " arguments, it was given " + std::to_string(launch.arguments.size()));
  }
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const device::Parameter& parameter = kernel.parameters[i];
    std::string name = "kernel '" + kernel.name + "': argument " + std::to_string(i);
    if (!parameter.name.empty()) name += " ('" + parameter.name + "')";
    Status status = CheckArgument(launch.arguments[i], parameter, name);
    if (!status.ok()) return status;
  }
  if (Status status = CheckBlock(launch, kernel); !status.ok()) return status;
  if (Status status = CheckOffset(launch, kernel); !status.ok()) return status;
  return CheckLocalMemory(launch, kernel, device);
}

}  // namespace gpusched::executor
