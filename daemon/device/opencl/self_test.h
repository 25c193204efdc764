// Whether a device gives a range of blocks the ids it would have in the whole launch.
#pragma once

#include <CL/cl.h>

#include <string>

namespace gpusched::device {

// Builds and runs small kernels: ids of a whole launch straight on the driver against the same cut,
// and ids of large grids against arithmetic. "" if the device can cut, else why not, in words.
std::string WhyItCannotCut(cl_context, cl_device_id, cl_command_queue);

}  // namespace gpusched::device
