// Compares a launch with what its kernel takes.
#pragma once

#include <string_view>

#include "device/device.h"
#include "executor/messages.h"
#include "gpusched/status.h"

namespace gpusched::executor {

// Shapes alone, before the kernel is known: BAD_GRID, BAD_BLOCK, TOO_MANY, ARGUMENT_SIZE.
Status CheckShape(const Launch& launch, const device::DeviceInfo& device);

// The block of a launch told by its threads, where it names none: the one that the kernel requires,
// else one of 64 to 256 threads, or what of that the kernel takes and the threads can be divided
// by.
device::Dim3 ChooseBlock(device::Dim3 threads, const device::KernelInfo& kernel,
                         const device::DeviceInfo& device);

// Sets grid and block of a launch that is told by its threads. BAD_GRID if there are none,
// BAD_BLOCK if the block does not divide them. `whose` says of the block where it is from, in words
// behind it.
Status ShapeBlocks(Launch& launch, device::Dim3 block, std::string_view whose = "");

// Argument count, kinds and sizes, block shape, local memory, offset: ARGUMENT_COUNT,
// ARGUMENT_KIND, ARGUMENT_SIZE, BAD_BLOCK, LOCAL_MEMORY, BAD_OFFSET. Shapes were checked.
Status CheckSignature(const Launch& launch, const device::KernelInfo& kernel,
                      const device::DeviceInfo& device);

}  // namespace gpusched::executor
