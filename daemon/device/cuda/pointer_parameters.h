// Which parameters of a kernel are addresses: PTX itself only says how wide they are.
#pragma once

#include <vector>

#include "device/cuda/ptx/module.h"

namespace gpusched::device {

// One for each of the entry's parameters: marked .ptr, or converted to an address, or used as one,
// at once or after a move. What is false may still be an address that is only stored or passed on.
std::vector<bool> PointerParameters(const ptx::Module& module, const ptx::Function& entry);

}  // namespace gpusched::device
