// Building programs from OpenCL C, with the compiler's words where it refuses.
#pragma once

#include <CL/cl.h>

#include <string>
#include <string_view>

#include "device/opencl/handle.h"
#include "gpusched/status.h"

namespace gpusched::device {

// Takes a second or more. `prelude` goes in front of `source`. INVALID_ARGUMENT (BUILD_FAILED) with
// the build log.
Result<ProgramHandle> BuildProgram(cl_context, cl_device_id, std::string_view prelude,
                                   std::string_view source);

// Of a program that did build: its warnings, "" if none.
std::string BuildLog(cl_program, cl_device_id);

// Compiles what a launch will run, so that the first launch does not: PoCL leaves it for then.
void Warm(cl_program);

}  // namespace gpusched::device
