// Compares a launch with what its kernel takes.
#pragma once

#include "device/device.h"
#include "executor/messages.h"
#include "gpusched/status.h"

namespace gpusched::executor {

// Shapes alone, before the kernel is known: BAD_GRID, BAD_BLOCK, TOO_MANY, ARGUMENT_SIZE.
Status CheckShape(const Launch& launch, const device::DeviceInfo& device);

// Argument count, kinds and sizes, block shape, local memory: ARGUMENT_COUNT, ARGUMENT_KIND,
// ARGUMENT_SIZE, BAD_BLOCK, LOCAL_MEMORY. Shapes were checked.
Status CheckSignature(const Launch& launch, const device::KernelInfo& kernel,
                      const device::DeviceInfo& device);

}  // namespace gpusched::executor
