// A program built from OpenCL C, its kernels, and what a launch of each must look like.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "device/opencl/handle.h"

namespace gpusched::device {

struct OpenClModule {
  ProgramHandle program;
  std::vector<KernelHandle> kernels;  // as info.kernels
  ModuleInfo info;                    // kernels by name
  bool runs_ranges = false;           // built with the prelude: launches go through the channel
};

// Takes a second or more: never on the executor's time. The build log is in the Status, or for
// warnings in the info. `cannot_cut`: why no kernel of this device can run in parts, "" if they
// can. INVALID_ARGUMENT (BUILD_FAILED, BAD_MODULE).
Result<OpenClModule> BuildModule(cl_context, cl_device_id, const std::string& source,
                                 const std::string& cannot_cut);

}  // namespace gpusched::device
