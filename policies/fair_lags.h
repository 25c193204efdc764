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
// someone's slice, or a debt made under another policy. Taken at its word it would shut the others
// out, or be shut out, until that is settled, be it for seconds. So a session enters with what can
// be settled soon (kSettledAtOnce), and the rest does not count as long as it stays. The accounts
// are not touched.
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
    const Account& account = view.account;
    const Wide at_par = Service(account, clock_.Reading(account.band) - clock_.Par(account.band));
    const Duration owed = account.lag - Duration(static_cast<std::int64_t>(at_par >> kFluidBits));
    const Duration bound = std::max(kSettledAtOnce, Stray());
    const Duration counted = std::clamp(owed, -bound, bound);
    largest_entry_ = std::max(largest_entry_, std::max(counted, -counted));
    uncounted_[view.id.slot] = owed - counted;
    uncounted_sum_ += owed - counted;
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
    if (uncounted != Duration(0)) account.zero_lag += FluidSpan(account, uncounted);
    return account;
  }
  void Charged(Duration charged) { longest_ = std::max(longest_, std::min(charged, kLongest)); }

  // The clocks with the par of what counts; valid until the next decision.
  const FluidClock& Counted(const FluidClock& clock) {
    clock_ = clock;
    const Wide away = Wide{uncounted_sum_.count()} << kFluidBits;
    if (away != 0) clock_.clamped_par += away;
    if (clock.free_weight == 0) return clock_;
    if (away != 0) clock_.free_par += away / clock.free_weight * clock.free_rate / kWholeDevice;
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
    const Duration stray = std::max(Stray(), largest_entry_);
    const Wide settle = Wide{(3 * stray).count()} * kWholeDevice / slowest;
    const Wide wait = settle + Wide{most_} * (2 * slice_ + longest_).count();
    return wait >= kForever.count() ? kForever : Duration(static_cast<std::int64_t>(wait));
  }

 private:
  // Long enough for what a swap of policies leaves behind; short enough to be shut out for.
  static constexpr Duration kSettledAtOnce = std::chrono::milliseconds(100);
  // A charge beyond this is an accident, not a length to plan with.
  static constexpr Duration kLongest = std::chrono::hours(1);
  static constexpr std::int64_t kGreatestWeight = 10'000;

  // Nanoseconds x 2^kFluidBits of service for a stretch of the account's clock.
  static Wide Service(const Account& account, FluidTime stretch) {
    switch (account.band) {
      case RateBand::kNone: return 0;
      case RateBand::kFree: return stretch * account.fluid_weight;
      case RateBand::kClamped: return stretch / kWholeDevice * account.rate;
    }
    return 0;
  }
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
  Duration longest_{0}, largest_entry_{0};
  std::int64_t entered_ = 0, most_ = 0;
  std::int64_t least_weight_ = kGreatestWeight;
  Rate least_clamped_ = kWholeDevice;
  Rate least_level_rate_ = kWholeDevice;  // the lowest level, as a fraction
  std::int64_t least_level_weight_ = 1;
};

}  // namespace gpusched
