// What a session may declare: its share checked against the rules, the caps and what others hold.
#pragma once

#include "executor/limits.h"
#include "gpusched/policy/types.h"
#include "gpusched/status.h"

namespace gpusched::executor {

// The share as granted, or everything that is wrong with it at once (BAD_SHARE), or
// ABOVE_CONFIGURED_CAP, or MIN_OVERSUBSCRIBED with the sum. `min_of_others` is the sum of `min`
// over the other open sessions of the device.
Result<Share> Admit(const Share& declared, const SessionLimits& limits, Rate min_of_others);

// The quota as granted. Whether the device has so much left is the device's to say.
Result<std::uint64_t> AdmitMemory(std::uint64_t asked, const SessionLimits& limits);

}  // namespace gpusched::executor
