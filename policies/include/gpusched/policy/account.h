// A session's account, and the fluid clocks on which its lag is read.
//
// The fluid reference serves every session that has work at its rate at once. Rates are weights
// water-filled between min and max: some sessions are *clamped* (their rate is their min or max),
// the others are *free* (rate = weight x level). The level moves with every arrival, so a lag kept
// as a number would have to be rewritten for everyone. Instead there are two clocks: the free clock
// advances by level per unit of time, the clamped clock by one. A session's lag is then
//   free:    weight x (free clock - zero_lag)
//   clamped: rate   x (clamped clock - zero_lag)
// and zero_lag moves only when the session itself is charged or changes band.
#pragma once

#include "gpusched/policy/types.h"

namespace gpusched {

__extension__ using Wide = __int128;

// A reading of a fluid clock: nanoseconds x 2^kFluidBits (per unit of weight on the free clock).
using FluidTime = Wide;
inline constexpr int kFluidBits = 30;

enum class RateBand : std::uint8_t {
  kNone,     // has no work, or the policy promises no shares: rate 0, the lag stands still
  kFree,     // rate = fluid_weight x level
  kClamped,  // rate = min or max
};

struct Account {
  Duration charged{0};  // since the session opened
  Duration lag{0};      // when the view was made; positive: owed
  Rate rate = 0;        // when the view was made
  RateBand band = RateBand::kNone;
  std::int64_t fluid_weight = 0;  // the weight that counts under the policy in force
  FluidTime zero_lag = 0;  // reading of the band's clock at which the lag was or will be zero
  Time last_served{};      // start of the latest slice; epoch: never
};

// The clocks at one instant, over all sessions of the device.
struct FluidClock {
  FluidTime free = 0;
  FluidTime clamped = 0;
  // "Par": the reading at which a session has exactly its rate's part of the runnable sessions'
  // summed lag. A runnable session is owed time if zero_lag <= par; one always is.
  FluidTime free_par = 0;
  FluidTime clamped_par = 0;
  // level = free_rate / free_weight (parts per billion per unit of weight).
  Rate free_rate = 0;
  std::int64_t free_weight = 0;
  Rate runnable_rate = 0;  // summed over the runnable sessions

  FluidTime Reading(RateBand band) const { return band == RateBand::kClamped ? clamped : free; }
  FluidTime Par(RateBand band) const { return band == RateBand::kClamped ? clamped_par : free_par; }
  // Fluid time from now until the band's clock shows `reading`; negative if it has.
  FluidTime Until(RateBand band, FluidTime reading) const {
    if (band == RateBand::kClamped) return reading - clamped;
    if (free_rate == 0) return reading - free;
    return (reading - free) * free_weight / free_rate * kWholeDevice;
  }
};

// The lag of an account on these clocks.
inline Duration LagAt(const FluidClock& clock, const Account& account) {
  switch (account.band) {
    case RateBand::kNone: return account.lag;
    case RateBand::kFree:
      return Duration(static_cast<std::int64_t>(
          ((clock.free - account.zero_lag) * account.fluid_weight) >> kFluidBits));
    case RateBand::kClamped:
      return Duration(static_cast<std::int64_t>(
          (((clock.clamped - account.zero_lag) >> kFluidBits) * account.rate) / kWholeDevice));
  }
  return account.lag;
}

// How far `service` moves zero_lag on the account's clock.
inline FluidTime FluidSpan(const Account& account, Duration service) {
  const Wide scaled = Wide{service.count()} << kFluidBits;
  switch (account.band) {
    case RateBand::kNone: return scaled;
    case RateBand::kFree: return scaled / (account.fluid_weight > 0 ? account.fluid_weight : 1);
    case RateBand::kClamped: return scaled / (account.rate > 0 ? account.rate : 1) * kWholeDevice;
  }
  return scaled;
}

}  // namespace gpusched
