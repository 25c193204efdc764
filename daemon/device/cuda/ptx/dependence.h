// What a loop's end waits for: whether another block must write before it comes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/cuda/ptx/flow.h"
#include "device/cuda/ptx/module.h"

namespace gpusched::device::ptx {

enum class Wait : std::uint8_t {
  kNone,    // no loop ends by what others write
  kQueue,   // one ends when an atomic counter says that the work is done
  kOthers,  // one ends only after another block has written, or it cannot be told
};

struct WaitFound {
  Wait wait = Wait::kNone;
  std::string reason;  // in words, with the line; "" for kNone
};

// `callees_touch_others[i]`: function i, or one it calls, has an operation that IsSharedWithOthers
// (operands.h); a call of unknown target is taken to have one if any function does.
WaitFound FindWait(const Module& module, const Function& function,
                   const std::vector<bool>& callees_touch_others);

}  // namespace gpusched::device::ptx
