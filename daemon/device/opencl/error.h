// What an OpenCL error code is called, and the Status a failed call becomes.
#pragma once

#include <CL/cl.h>

#include <string>
#include <string_view>

#include "gpusched/status.h"

namespace gpusched::device {

std::string ClErrorName(
    cl_int error);  // "CL_OUT_OF_RESOURCES", or the number of one we do not know

// INTERNAL (DEVICE_FAILED): "<what> failed with <name>; <advice, where the code has one>".
Status ClFailure(std::string_view what, cl_int error);

}  // namespace gpusched::device
