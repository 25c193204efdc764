// The time rescues may take: a token bucket that fills at the background share and holds one slice.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpusched/policy/policy.h"

namespace gpusched {

// Kept as the instant at which the bucket is full, for only a full one pays for a rescue. A rescue
// of c, started when it was full, empties it until c / share later; one longer than a slice (it
// could not be cut) overdraws it. So over any second rescues take at most the share of it plus one
// slice or command.
class RescueBudget {
 public:
  explicit RescueBudget(Rate share) : share_(share) {}

  Time full_at() const { return share_ > 0 ? full_at_ : kNever; }

  // By estimate, until the device tells.
  void Spend(Time now, Duration estimate) {
    full_at_ = After(std::max(full_at_, now), Refill(estimate));
  }
  void Settle(const SliceReport& rescue) {
    full_at_ = After(rescue.started, Refill(rescue.charged));
  }

  // How long the bucket takes to pay for so much.
  Duration Refill(Duration spent) const {
    if (share_ <= 0) return kForever;
    const Wide refill = Wide{std::max(spent, Duration(0)).count()} * kWholeDevice / share_;
    return refill >= kForever.count() ? kForever : Duration(static_cast<std::int64_t>(refill));
  }

 private:
  const Rate share_;
  Time full_at_{};
};

}  // namespace gpusched
