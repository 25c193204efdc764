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
// are not touched. How far an entrant is from par is known only at the next decision, by clocks
// that have it in them: beside others of a weight a thousand times smaller it moves par to where it
// is.
//
// From the same figures follows how long a session may have to wait. Those extremes only ever grow:
// the time someone has waited was shaped by sessions that may have left since.
class FairLags {
 public:
  explicit FairLags(Duration slice) : slice_(slice) {}

  void Reserve(std::uint32_t slot) {
    if (slot < uncounted_.size()) return;
    uncounted_.resize(std::size_t{slot} + 1);
    entrants_.reserve(uncounted_.size());
    settling_.reserve(uncounted_.size());
  }

  // A session has work from now on; no longer.
  void Enter(const SessionView& view) {
    uncounted_[view.id.slot] = Duration(0);
    entrants_.push_back(view);
    most_ = std::max(most_, ++entered_);
  }
  void Leave(SessionId id) {
    uncounted_sum_ -= uncounted_[id.slot];
    std::erase_if(entrants_, [id](const SessionView& entrant) { return entrant.id == id; });
    --entered_;
  }

  // The account of a session that has entered, with the zero_lag that counts.
  Account Counted(const SessionView& view) {
    for (SessionView& entrant : entrants_) {
      if (entrant.id == view.id) entrant = view;
    }
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
  // A turn may be asked for that long, whatever it takes then.
  void Requested(Duration request) { longest_ = std::max(longest_, request); }
  void Charged(Duration charged) { longest_ = std::max(longest_, std::min(charged, kLongest)); }

  // The clocks of a decision with the par of what counts; valid until the next one. `requeue` is
  // called with each entrant of which not everything counts.
  template <typename Requeue>
  const FluidClock& Counted(const FluidClock& clock, Requeue requeue) {
    settling_.swap(entrants_);
    for (const SessionView& entrant : settling_) {
      if (Settle(clock, entrant)) requeue(entrant);
    }
    settling_.clear();
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
    const Duration stray = std::max(Stray(), largest_entry_);
    const Wide settle = Wide{(3 * stray).count()} * kWholeDevice / slowest;
    const Wide wait = settle + Wide{most_} * (2 * slice_ + longest_).count();
    return wait >= kForever.count() ? kForever : Duration(static_cast<std::int64_t>(wait));
  }

 private:
  // Long enough for what a swap of policies leaves behind; short enough to be shut out for.
  static constexpr Duration kSettledAtOnce = std::chrono::milliseconds(100);
  // Beside the other limits, far beyond any lag.
  static constexpr Duration kMostLeftOut = std::chrono::hours(24);
  // A charge beyond this is an accident, not a length to plan with.
  static constexpr Duration kLongest = std::chrono::hours(1);
  static constexpr std::int64_t kGreatestWeight = 10'000;

  // Whether something of what an entrant is owed beyond par, or owes, does not count. Par is its
  // rate's part of all lags, its own among them, and moves with what is left out.
  bool Settle(const FluidClock& clock, const SessionView& entrant) {
    const Account& account = entrant.account;
    const Wide beyond = Service(account, clock.Par(account.band) - account.zero_lag);
    const Duration owed(static_cast<std::int64_t>(beyond >> kFluidBits));
    const Duration bound = std::max(kSettledAtOnce, Stray());
    const Duration counted = std::clamp(owed, -bound, bound);
    largest_entry_ = std::max(largest_entry_, std::max(counted, -counted));
    if (owed == counted) return false;
    const Rate rate = RateOf(clock, account);
    if (rate >= clock.runnable_rate) return false;  // it is the only one
    const Wide left_out =
        Wide{(owed - counted).count()} * clock.runnable_rate / (clock.runnable_rate - rate);
    const Duration uncounted(static_cast<std::int64_t>(
        std::clamp<Wide>(left_out, -kMostLeftOut.count(), kMostLeftOut.count())));
    uncounted_[entrant.id.slot] = uncounted;
    uncounted_sum_ += uncounted;
    return true;
  }
  static Rate RateOf(const FluidClock& clock, const Account& account) {
    switch (account.band) {
      case RateBand::kNone: return 0;
      case RateBand::kFree:
        return clock.free_weight == 0 ? 0
                                      : static_cast<Rate>(Wide{clock.free_rate} *
                                                          account.fluid_weight / clock.free_weight);
      case RateBand::kClamped: return account.rate;
    }
    return 0;
  }

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
  FluidClock clock_;                              // at the latest decision
  std::vector<Duration> uncounted_;               // by slot: lag that does not count
  std::vector<SessionView> entrants_, settling_;  // since the latest decision
  Duration uncounted_sum_{0};                     // over those who have entered
  Duration longest_{0}, largest_entry_{0};
  std::int64_t entered_ = 0, most_ = 0;
  std::int64_t least_weight_ = kGreatestWeight;
  Rate least_clamped_ = kWholeDevice;
  Rate least_level_rate_ = kWholeDevice;  // the lowest level, as a fraction
  std::int64_t least_level_weight_ = 1;
};

}  // namespace gpusched
