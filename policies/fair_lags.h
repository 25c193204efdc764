// The lags a fair policy orders by: the accounts', less what is too old to be settled at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpusched/policy/account.h"
#include "gpusched/policy/policy.h"

namespace gpusched {

// As long as the same sessions have work, none strays further from par than one slice and one
// overrun. A session may come back with more, though: a claim from small jobs that each waited for
// someone's slice, from what was in flight each time it came, or a debt made under another policy.
// Taken at its word it would shut the others out, or be shut out, until that is settled. So of a
// lag with which a session enters no more counts than one that stays may have, as long as it
// stays. The accounts are not touched.
//
// From the same figures follows how long a session may have to wait. Those extremes only ever grow:
// the time someone has waited was shaped by sessions that may have left since.
class FairLags {
 public:
  explicit FairLags(Duration slice) : slice_(slice) {}

  void Reserve(std::uint32_t slot) {
    if (slot >= uncounted_.size()) uncounted_.resize(std::size_t{slot} + 1);
  }

  // A session has work from now on; no longer.
  void Enter(const SessionView& view) {
    const Duration lag = view.account.lag, most = Stray();
    const Duration uncounted = lag - std::clamp(lag, -most, most);
    uncounted_[view.id.slot] = uncounted;
    uncounted_sum_ += uncounted;
    most_ = std::max(most_, ++entered_);
  }
  void Leave(SessionId id) {
    uncounted_sum_ -= uncounted_[id.slot];
    --entered_;
  }

  // The account of a session that has entered, with the zero_lag that counts.
  Account Counted(const SessionView& view) {
    Account account = view.account;
    switch (account.band) {
      case RateBand::kNone: break;
      case RateBand::kFree: least_weight_ = std::min(least_weight_, account.fluid_weight); break;
      case RateBand::kClamped: least_clamped_ = std::min(least_clamped_, account.rate); break;
    }
    const Duration uncounted = uncounted_[view.id.slot];
    const Duration counted = account.lag - uncounted;
    largest_ = std::max(largest_, std::max(counted, -counted));
    if (uncounted != Duration(0)) account.zero_lag += FluidSpan(account, uncounted);
    return account;
  }
  // A turn may be asked for that long, whatever it takes then.
  void Requested(Duration request) { longest_ = std::max(longest_, request); }
  void Charged(Duration charged) { longest_ = std::max(longest_, std::min(charged, kLongest)); }

  // The clocks of a decision with the par of what counts; valid until the next one.
  const FluidClock& Counted(const FluidClock& clock) {
    clock_ = clock;
    if (uncounted_sum_ != Duration(0) && clock.runnable_rate > 0) {
      const Wide away = (Wide{uncounted_sum_.count()} << kFluidBits) / clock.runnable_rate;
      clock_.clamped_par += away * kWholeDevice;
      if (clock.free_weight > 0) clock_.free_par += away * clock.free_rate / clock.free_weight;
    }
    if (clock.free_weight == 0) return clock_;
    if (clock.free_rate * least_level_weight_ < least_level_rate_ * clock.free_weight) {
      least_level_rate_ = clock.free_rate;
      least_level_weight_ = clock.free_weight;
    }
    return clock_;
  }

  // Until par has passed a session that stands as far beyond it as any, and those as far behind
  // have had their way; then everyone before it in the order has one slice.
  Duration LongestWait() const {
    const Rate slowest = Slowest();
    if (slowest == 0) return kForever;
    const Duration stray = std::max(Stray(), largest_);
    const Wide settle = Wide{(3 * stray).count()} * kWholeDevice / slowest;
    const Wide wait = settle + Wide{most_} * (2 * slice_ + longest_).count();
    return wait >= kForever.count() ? kForever : Duration(static_cast<std::int64_t>(wait));
  }

 private:
  // A charge beyond this is an accident, not a length to plan with.
  static constexpr Duration kLongest = std::chrono::hours(1);
  static constexpr std::int64_t kGreatestWeight = 10'000;

  // Twice what one slice can make, as sessions come and go.
  Duration Stray() const { return 2 * (slice_ + longest_); }
  Rate Slowest() const {
    const Wide free = Wide{least_level_rate_} * least_weight_ / least_level_weight_;
    return static_cast<Rate>(std::min<Wide>(free, least_clamped_));
  }

  const Duration slice_;
  FluidClock clock_;                 // at the latest decision
  std::vector<Duration> uncounted_;  // by slot: lag that does not count
  Duration uncounted_sum_{0};        // over those who have entered
  Duration longest_{0};
  Duration largest_{0};  // lag that counted
  std::int64_t entered_ = 0, most_ = 0;
  std::int64_t least_weight_ = kGreatestWeight;
  Rate least_clamped_ = kWholeDevice;
  Rate least_level_rate_ = kWholeDevice;  // the lowest level, as a fraction
  std::int64_t least_level_weight_ = 1;
};

}  // namespace gpusched
