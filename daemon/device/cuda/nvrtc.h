// CUDA C++ to PTX through NVRTC, where that library is installed; nothing of it is linked.
#pragma once

#include <cstdint>
#include <string>

#include "gpusched/status.h"

namespace gpusched::device {

// PTX for the newest architecture that both NVRTC and the device (75, 90) know.
//   UNIMPLEMENTED (NO_USABLE_IMAGE)   NVRTC is not installed; the message says what to install
//   INVALID_ARGUMENT (BUILD_FAILED)   the compiler's log
Result<std::string> CompileCudaSource(const std::string& source, std::uint32_t sm);

}  // namespace gpusched::device
