// The lags a fair policy orders by: the accounts', less what is too old to be settled at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpusched/policy/account.h"
#include "gpusched/policy/policy.h"

namespace gpusched {

// As long as the same sessions have work, none strays further from par than one slice or command.
// Some get further all the same: by small jobs that each waited for someone's slice, by what was in
// flight each time somebody came, by a debt made under another policy. Taken at its word, such a
// claim or debt would shut the others out, or its holder, until it is settled, and whoever came
// meanwhile would wait for it. So of a lag no more counts than slices and commands make (`Strays`);
// the rest never will. Only what a session brings along, when it or the policy comes, counts up to
// kBroughtAlong until it is settled: an operator who changes the policy is not to undo what the one
// before was about to give. The accounts are not touched.
//
// From the same figures follows how long a session may have to wait. Those extremes only ever grow:
// the time someone has waited was shaped by sessions that may have left since.
class FairLags {
 public:
  // How far the policy lets a lag stray: one slice or command, or as much for each in the crowd.
  enum class Strays : std::uint8_t { kByOne, kByCrowd };

  FairLags(Duration slice, Strays strays) : slice_(slice), strays_(strays) {}

  // A session that has come, or was there when the policy did.
  void Add(std::uint32_t slot) {
    if (slot >= held_.size()) held_.resize(std::size_t{slot} + 1);
    held_[slot] = Held{};
  }

  // A session has work from now on; no longer.
  void Enter(SessionId id) {
    uncounted_ += held_[id.slot].uncounted;
    most_ = std::max(most_, ++entered_);
  }
  void Leave(SessionId id) {
    uncounted_ -= held_[id.slot].uncounted;
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
    Held& held = held_[view.id.slot];
    const Duration lag = account.lag - held.uncounted, most = std::max(Furthest(), held.brought);
    const Duration counted = std::clamp(lag, -most, most);
    held.brought = std::min(held.brought, std::max(counted, -counted));
    largest_ = std::max({largest_, counted, -counted});
    held.uncounted += lag - counted;
    uncounted_ += lag - counted;
    if (held.uncounted != Duration(0)) account.zero_lag += FluidSpan(account, held.uncounted);
    return account;
  }
  // A turn may be asked for that long, whatever it takes then.
  void Requested(Duration request) { longest_ = std::max(longest_, request); }
  void Charged(Duration charged) { longest_ = std::max(longest_, std::min(charged, kLongest)); }

  // The clocks of a decision with the par of what counts; valid until the next one.
  const FluidClock& Counted(const FluidClock& clock) {
    clock_ = clock;
    if (uncounted_ != Duration(0) && clock.runnable_rate > 0) {
      const Wide away = (Wide{uncounted_.count()} << kFluidBits) / clock.runnable_rate;
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
    const Duration stray = std::max(2 * (slice_ + longest_), largest_);
    const Wide settle = Wide{(3 * stray).count()} * kWholeDevice / slowest;
    const Wide wait = settle + Wide{most_} * (2 * slice_ + longest_).count();
    return wait >= kForever.count() ? kForever : Duration(static_cast<std::int64_t>(wait));
  }

 private:
  struct Held {
    Duration uncounted{0};             // of its lag, for good
    Duration brought = kBroughtAlong;  // what may count of what it brought along
  };
  // Long enough for what a swap of policies leaves behind; short enough to be shut out for.
  static constexpr Duration kBroughtAlong = std::chrono::milliseconds(100);
  // A charge beyond this is an accident, not a length to plan with.
  static constexpr Duration kLongest = std::chrono::hours(1);
  static constexpr std::int64_t kGreatestWeight = 10'000;

  Duration Furthest() const {
    switch (strays_) {
      case Strays::kByOne: return std::max(slice_, longest_);
      case Strays::kByCrowd: return most_ * (slice_ + longest_);
    }
    return slice_;
  }
  Rate Slowest() const {
    const Wide free = Wide{least_level_rate_} * least_weight_ / least_level_weight_;
    return static_cast<Rate>(std::min<Wide>(free, least_clamped_));
  }

  const Duration slice_;
  const Strays strays_;
  FluidClock clock_;        // at the latest decision
  std::vector<Held> held_;  // by slot
  Duration uncounted_{0};   // over those who have entered
  Duration longest_{0};
  Duration largest_{0};  // lag that counted
  std::int64_t entered_ = 0, most_ = 0;
  std::int64_t least_weight_ = kGreatestWeight;
  Rate least_clamped_ = kWholeDevice;
  Rate least_level_rate_ = kWholeDevice;  // the lowest level, as a fraction
  std::int64_t least_level_weight_ = 1;
};

}  // namespace gpusched
