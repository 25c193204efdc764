// The fluid reference as the checker sees it: what every session's rate is at an instant.
//
// It shares nothing with core/fluid: here rates are found anew from the whole set, by sorting the
// levels at which somebody reaches a bound, and in floating point. It decides nothing; it judges.
#pragma once

#include <vector>

#include "gpusched/policy/policy.h"
#include "gpusched/policy/types.h"

namespace gpusched::sim {

struct FluidMember {
  Share share;
  bool has_work = false;
  double rate = 0;  // the answer, as a fraction of the device
};

// Sets the rate of every member: weights (all equal and without `min` under kEqual, unless strict)
// water-filled between min and max over those that have work; the min of a strict session without
// work goes to nobody; 0 for the others, and for all under kNone.
void SetFluidRates(ShareRule rule, std::vector<FluidMember*>& members);

}  // namespace gpusched::sim
