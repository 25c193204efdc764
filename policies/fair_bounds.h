// What a fair policy has seen so far, and what follows for claims and waiting times.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpusched/policy/account.h"
#include "gpusched/policy/policy.h"

namespace gpusched {

// Two uses, both from the same figures.
//
// Claims. As long as the same sessions have work, none of them strays further from par than one
// slice and one overrun. A session may come back with more, though: a claim from small jobs that
// each waited for someone's slice, or a debt made under another policy. Taken at its word it would
// shut the others out, or be shut out, until that is settled, be it for seconds. So the order sees
// lags only up to twice what one slice can make, and what is beyond is settled a little with every
// slice. The accounts are not touched.
//
// Waiting. The extremes only ever grow: the time a session has waited was shaped by sessions that
// may have left since.
class FairBounds {
 public:
  explicit FairBounds(Duration slice) : slice_(slice) {}

  void SawSession(const SessionView& view) {
    const Account& account = view.account;
    switch (account.band) {
      case RateBand::kNone: break;
      case RateBand::kFree: least_weight_ = std::min(least_weight_, account.fluid_weight); break;
      case RateBand::kClamped: least_clamped_ = std::min(least_clamped_, account.rate); break;
    }
  }
  void SawRunnable() { most_runnable_ = std::max(most_runnable_, ++runnable_); }
  void SawIdle() { --runnable_; }
  void SawCharge(Duration charged) { longest_ = std::max(longest_, charged); }
  void SawClock(const FluidClock& clock) {
    clock_ = clock;
    if (clock.free_weight > 0 &&
        clock.free_rate * least_level_weight_ < least_level_rate_ * clock.free_weight) {
      least_level_rate_ = clock.free_rate;
      least_level_weight_ = clock.free_weight;
    }
  }

  // zero_lag, no further from par than twice what one slice can make.
  FluidTime BoundedZeroLag(const Account& account) const {
    const FluidTime latest_par = clock_.Par(account.band);
    const Wide limit = Wide{Stray().count()} << kFluidBits;
    const Wide away = Service(account, account.zero_lag - latest_par);
    if (-limit <= away && away <= limit) return account.zero_lag;
    // Rare, so exact: since the latest decision par has moved with the clock, which the lag tells.
    const FluidTime reading = account.zero_lag + FluidSpan(account, account.lag);
    const FluidTime par = reading + latest_par - clock_.Reading(account.band);
    const FluidTime bound = FluidSpan(account, Stray());
    return std::clamp(account.zero_lag, par - bound, par + bound);
  }

  // Until par has passed a session that stands as far beyond it as it can, and those who stand as
  // far behind have had their way; then everyone before it in the order has one slice.
  Duration LongestWait() const {
    const Rate slowest = Slowest();
    if (slowest == 0) return kForever;
    const Wide settle = Wide{(3 * Stray()).count()} * kWholeDevice / slowest;
    const Wide turns = Wide{most_runnable_} * (2 * slice_ + longest_).count();
    const Wide wait = settle + turns;
    return wait >= kForever.count() ? kForever : Duration(static_cast<std::int64_t>(wait));
  }

 private:
  // Nanoseconds x 2^kFluidBits of service for a stretch of the account's clock.
  static Wide Service(const Account& account, FluidTime stretch) {
    switch (account.band) {
      case RateBand::kNone: return stretch;
      case RateBand::kFree: return stretch * account.fluid_weight;
      case RateBand::kClamped: return stretch / kWholeDevice * account.rate;
    }
    return stretch;
  }
  Duration Stray() const { return 2 * (slice_ + std::min(longest_, kLongest)); }
  Rate Slowest() const {
    const Wide free = Wide{least_level_rate_} * least_weight_ / least_level_weight_;
    return static_cast<Rate>(std::min<Wide>(free, least_clamped_));
  }

  // A single charge beyond this is an accident, not a command length to plan with; it also keeps
  // the arithmetic far from its ends.
  static constexpr Duration kLongest = std::chrono::hours(1);
  static constexpr std::int64_t kGreatestWeight = 10'000;

  const Duration slice_;
  FluidClock clock_;     // at the latest decision
  Duration longest_{0};  // charge for one slice
  std::int64_t runnable_ = 0, most_runnable_ = 0;
  std::int64_t least_weight_ = kGreatestWeight;
  Rate least_clamped_ = kWholeDevice;
  Rate least_level_rate_ = kWholeDevice;  // the lowest level, as a fraction
  std::int64_t least_level_weight_ = 1;
};

}  // namespace gpusched
