// The rules a launch must keep, each refused in the words of who wrote the launch.
#include "executor/signature.h"

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
  return CheckLocalMemory(launch, kernel, device);
}

}  // namespace gpusched::executor
