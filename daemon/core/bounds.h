// The preemption bound in force for each priority level.
//
// It is the least of the device's setting and a twentieth of the smallest latency target among open
// sessions of higher priority, with work or not, and never under the device's shortest useful
// chunk.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

#include "gpusched/policy/types.h"

namespace gpusched::core {

class Bounds {
 public:
  Bounds(Duration setting, Duration shortest) : setting_(setting), shortest_(shortest) {
    Recompute();
  }

  void Set(Duration setting) {
    setting_ = setting;
    Recompute();
  }
  void Add(const Share& share) {
    if (share.latency_target <= Duration::zero()) return;
    targets_[Level(share.priority)].insert(share.latency_target);
    Recompute();
  }
  void Remove(const Share& share) {
    if (share.latency_target <= Duration::zero()) return;
    auto& level = targets_[Level(share.priority)];
    level.erase(level.find(share.latency_target));
    Recompute();
  }

  Duration setting() const { return setting_; }
  Duration InForce(std::int32_t priority) const { return in_force_[Level(priority)]; }

 private:
  // A higher arrival should lose no more than a twentieth of its target to work in flight.
  static constexpr int kPartOfTarget = 20;
  static constexpr std::size_t kLevels = 256;
  static std::size_t Level(std::int32_t priority) {
    return static_cast<std::size_t>(std::clamp(priority, -128, 127) + 128);
  }

  void Recompute() {
    Duration least = setting_;
    for (std::size_t level = kLevels; level-- > 0;) {
      in_force_[level] = std::max(least, shortest_);
      if (!targets_[level].empty())
        least = std::min(least, *targets_[level].begin() / kPartOfTarget);
    }
  }

  Duration setting_;
  const Duration shortest_;
  std::array<std::multiset<Duration>, kLevels> targets_;
  std::array<Duration, kLevels> in_force_{};
};

}  // namespace gpusched::core
