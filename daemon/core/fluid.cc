// The water level's walk, and lags read off the two clocks.
#include "core/fluid.h"

#include <algorithm>

#include "core/check.h"

namespace gpusched::core {

void Fluid::ApplyRule(Member& m) const {
  const bool weighted = rule_ == ShareRule::kWeighted;
  m.weight = weighted ? m.share.weight : 1;
  // A strict min binds under round robin too: otherwise the cap on the others could not be kept.
  m.min = weighted || m.share.strict ? m.share.min : 0;
  m.max = m.share.max;
}

void Fluid::Add(std::uint32_t slot, const Share& share) {
  if (slot >= members_.size()) members_.resize(slot + 1);
  moved_.reserve(members_.size());
  free_to_min_.Reserve(slot);
  free_to_max_.Reserve(slot);
  min_to_free_.Reserve(slot);
  max_to_free_.Reserve(slot);
  Member& m = members_[slot];
  m = Member{};
  m.share = share;
  m.present = true;
  ApplyRule(m);
  if (share.strict) {
    reserved_ += share.min;
    FindLevel();
  }
}

void Fluid::Remove(std::uint32_t slot) {
  Member& m = members_[slot];
  GPUSCHED_CHECK(m.present);
  SetRunnable(slot, false);
  SetActive(slot, false);
  const Duration lag = m.lag;
  if (m.share.strict) reserved_ -= m.share.min;
  m.present = false;
  FindLevel();
  if (rule_ != ShareRule::kNone) Advance(lag);
}

void Fluid::SetShare(std::uint32_t slot, const Share& share) {
  Member& m = members_[slot];
  const bool active = m.active, runnable = m.runnable;
  SetRunnable(slot, false);
  SetActive(slot, false);
  if (m.share.strict) reserved_ -= m.share.min;
  m.share = share;
  ApplyRule(m);
  if (share.strict) reserved_ += share.min;
  FindLevel();
  SetActive(slot, active);
  SetRunnable(slot, runnable);
}

void Fluid::SetActive(std::uint32_t slot, bool has_work) {
  Member& m = members_[slot];
  if (m.active == has_work) return;
  m.active = has_work;
  if (m.share.strict) reserved_ += has_work ? -m.share.min : m.share.min;
  if (rule_ == ShareRule::kNone) return;
  has_work ? Enter(slot) : Leave(slot);
  FindLevel();
  if (has_work || m.lag <= carried_claim_) return;
  const Duration excess = m.lag - carried_claim_;
  m.lag -= excess;
  m.given -= excess;
  Advance(excess);
}

void Fluid::SetRunnable(std::uint32_t slot, bool runnable) {
  Member& m = members_[slot];
  if (m.runnable == runnable) return;
  if (m.runnable) CountRunnable(m, -1);
  m.runnable = runnable;
  if (m.runnable) CountRunnable(m, +1);
}

void Fluid::SetRule(ShareRule rule) {
  for (std::uint32_t slot = 0; slot < members_.size(); ++slot) {
    if (members_[slot].place != Place::kOut) Leave(slot);
  }
  rule_ = rule;
  level_ = {};
  for (std::uint32_t slot = 0; slot < members_.size(); ++slot) {
    Member& m = members_[slot];
    if (!m.present) continue;
    ApplyRule(m);
    if (rule_ != ShareRule::kNone && m.active) Enter(slot);
  }
  FindLevel();
  moved_.clear();
}

void Fluid::Enter(std::uint32_t slot) {
  Member& m = members_[slot];
  const Wide level_at_weight = Wide{level_.numerator} * m.weight;
  Place place = Place::kFree;
  if (level_at_weight < Wide{m.min} * level_.denominator) place = Place::kAtMin;
  if (level_at_weight > Wide{m.max} * level_.denominator) place = Place::kAtMax;
  PutAt(slot, place);
}

void Fluid::Leave(std::uint32_t slot) {
  const Duration lag = LagOf(members_[slot]);
  TakeFrom(slot);
  members_[slot].lag = lag;
}

// Into a band, with the lag the member has outside of bands.
void Fluid::PutAt(std::uint32_t slot, Place place) {
  Member& m = members_[slot];
  m.place = place;
  switch (place) {
    case Place::kOut: break;
    case Place::kFree:
      free_weight_ += m.weight;
      if (m.min > 0) free_to_min_.Set(slot, {m.min, m.weight});
      if (m.max < kWholeDevice) free_to_max_.Set(slot, {m.max, m.weight});
      break;
    case Place::kAtMin:
      clamped_rate_ += m.min;
      min_to_free_.Set(slot, {m.min, m.weight});
      break;
    case Place::kAtMax:
      clamped_rate_ += m.max;
      max_to_free_.Set(slot, {m.max, m.weight});
      break;
  }
  SetLag(m, m.lag);
  if (m.runnable) CountRunnable(m, +1);
}

void Fluid::TakeFrom(std::uint32_t slot) {
  Member& m = members_[slot];
  if (m.runnable) CountRunnable(m, -1);
  switch (m.place) {
    case Place::kOut: break;
    case Place::kFree:
      free_weight_ -= m.weight;
      free_to_min_.Remove(slot);
      free_to_max_.Remove(slot);
      break;
    case Place::kAtMin:
      clamped_rate_ -= m.min;
      min_to_free_.Remove(slot);
      break;
    case Place::kAtMax:
      clamped_rate_ -= m.max;
      max_to_free_.Remove(slot);
      break;
  }
  m.place = Place::kOut;
}

void Fluid::MoveTo(std::uint32_t slot, Place place) {
  Leave(slot);
  PutAt(slot, place);
  if (std::find(moved_.begin(), moved_.end(), slot) == moved_.end()) moved_.push_back(slot);
}

Fluid::Fraction Fluid::Target() const {
  return {std::max<Rate>(0, kWholeDevice - reserved_ - clamped_rate_), free_weight_};
}

// Walks the level up or down until the rates sum to what there is. Bands are always those of
// level_, so each member is met at most twice.
void Fluid::FindLevel() {
  if (rule_ == ShareRule::kNone) return;
  const Rate there_is = kWholeDevice - reserved_;
  const bool too_much = free_weight_ > 0 ? Wide{level_.numerator} * free_weight_ >
                                               Wide{there_is - clamped_rate_} * level_.denominator
                                         : clamped_rate_ > there_is;
  if (too_much) {
    while (StepDown()) {}
  } else {
    while (StepUp()) {}
  }
}

// One bound further up, or to the target if that comes first (then false).
bool Fluid::StepUp() {
  const bool at_max_next =
      !free_to_max_.empty() && (min_to_free_.empty() || free_to_max_.top() < min_to_free_.top());
  const bool none_next = free_to_max_.empty() && min_to_free_.empty();
  if (free_weight_ > 0) {
    const Fraction target = Target();
    if (none_next || !((at_max_next ? free_to_max_.top() : min_to_free_.top()) < target)) {
      level_ = target;
      return false;
    }
  } else if (none_next || clamped_rate_ >= kWholeDevice - reserved_) {
    return false;  // all at their bounds: what is left over is nobody's
  }
  if (at_max_next) {
    level_ = free_to_max_.top();
    MoveTo(free_to_max_.top_slot(), Place::kAtMax);
  } else {
    level_ = min_to_free_.top();
    MoveTo(min_to_free_.top_slot(), Place::kFree);
  }
  return true;
}

bool Fluid::StepDown() {
  const bool at_min_next =
      !free_to_min_.empty() && (max_to_free_.empty() || max_to_free_.top() < free_to_min_.top());
  const bool none_next = free_to_min_.empty() && max_to_free_.empty();
  if (free_weight_ > 0) {
    const Fraction target = Target();
    if (none_next || !(target < (at_min_next ? free_to_min_.top() : max_to_free_.top()))) {
      level_ = target;
      return false;
    }
  } else if (none_next || clamped_rate_ <= kWholeDevice - reserved_) {
    return false;
  }
  if (at_min_next) {
    level_ = free_to_min_.top();
    MoveTo(free_to_min_.top_slot(), Place::kAtMin);
  } else {
    level_ = max_to_free_.top();
    MoveTo(max_to_free_.top_slot(), Place::kFree);
  }
  return true;
}

void Fluid::Advance(Duration fluid_time) {
  const Wide scaled = Wide{fluid_time.count()} << kFluidBits;
  clamped_clock_ += scaled;
  if (free_weight_ > 0) {
    const Fraction target = Target();
    free_clock_ += scaled * target.numerator / (Wide{target.denominator} * kWholeDevice);
  }
}

void Fluid::Charge(std::uint32_t slot, Duration charged) {
  if (rule_ == ShareRule::kNone) return;
  Member& m = members_[slot];
  m.applied += charged;
  if (m.place == Place::kOut) {
    m.lag -= charged;
    return;
  }
  if (m.runnable) CountRunnable(m, -1);
  m.zero_lag += FluidSpan(Band(m), charged);
  const Duration lag = LagOf(m);
  const Duration kept = std::clamp(lag, -largest_lag_, largest_lag_);
  if (kept != lag) {
    m.given += kept - lag;
    SetLag(m, kept);
  }
  if (m.runnable) CountRunnable(m, +1);
}

void Fluid::CountRunnable(const Member& m, int sign) {
  switch (BandOf(m.place)) {
    case RateBand::kNone: return;
    case RateBand::kFree:
      runnable_weight_ += sign * m.weight;
      free_moment_ += sign * m.zero_lag * m.weight;
      return;
    case RateBand::kClamped:
      runnable_rate_ += sign * ClampedRate(m);
      clamped_moment_ += sign * m.zero_lag * ClampedRate(m);
      return;
  }
}

// Enough of an account to measure spans and lags by.
Account Fluid::Band(const Member& m) const {
  Account account;
  account.band = BandOf(m.place);
  account.fluid_weight = m.weight;
  if (account.band == RateBand::kClamped) account.rate = ClampedRate(m);
  account.zero_lag = m.zero_lag;
  account.lag = m.lag;
  return account;
}

Duration Fluid::LagOf(const Member& m) const {
  FluidClock clock;
  clock.free = free_clock_;
  clock.clamped = clamped_clock_;
  return LagAt(clock, Band(m));
}

void Fluid::SetLag(Member& m, Duration lag) {
  m.lag = lag;
  const FluidTime reading = BandOf(m.place) == RateBand::kClamped ? clamped_clock_ : free_clock_;
  m.zero_lag = reading - FluidSpan(Band(m), lag);
}

FluidClock Fluid::Clock() const {
  FluidClock clock;
  clock.free = clock.free_par = free_clock_;
  clock.clamped = clock.clamped_par = clamped_clock_;
  const Fraction target = Target();
  clock.free_rate = target.numerator;
  clock.free_weight = free_weight_;
  // Rounding must never leave nobody owed: par errs upwards, by far less than a nanosecond of
  // service.
  constexpr FluidTime kSlack = 1 << 12;
  Wide rate = runnable_rate_;
  if (runnable_weight_ == free_weight_) {
    rate += free_weight_ > 0 ? target.numerator : 0;  // all that share; saves a division
  } else if (free_weight_ > 0) {
    rate += Wide{target.numerator} * runnable_weight_ / free_weight_;
  }
  clock.runnable_rate = static_cast<Rate>(rate);
  if (runnable_rate_ == 0) {
    if (runnable_weight_ > 0) clock.free_par = free_moment_ / runnable_weight_ + kSlack;
    return clock;
  }
  // Summed lag, in nanoseconds x 2^kFluidBits, and summed rate, both over the runnable.
  const Wide lag = (free_clock_ * runnable_weight_ - free_moment_) +
                   (clamped_clock_ * runnable_rate_ - clamped_moment_) / kWholeDevice;
  const Wide behind = lag / rate * kWholeDevice;  // fluid time by which each is owed, at par
  clock.clamped_par = clamped_clock_ - behind + (Wide{kSlack} << 20);
  if (free_weight_ > 0) {
    clock.free_par = free_clock_ - behind / free_weight_ * target.numerator / kWholeDevice + kSlack;
  }
  return clock;
}

void Fluid::Describe(std::uint32_t slot, Account& account) const {
  const Member& m = members_[slot];
  account.band = BandOf(m.place);
  account.fluid_weight = m.weight;
  account.zero_lag = m.zero_lag;
  switch (account.band) {
    case RateBand::kNone: account.rate = 0; break;
    case RateBand::kFree:
      account.rate = free_weight_ > 0 ? Target().numerator * m.weight / free_weight_ : 0;
      break;
    case RateBand::kClamped: account.rate = ClampedRate(m); break;
  }
  account.lag = LagOf(m);
}

Duration Fluid::Lag(std::uint32_t slot) const { return LagOf(members_[slot]); }

Duration Fluid::Owed(std::uint32_t slot) const {
  const Duration lag = LagOf(members_[slot]);
  FluidClock at_par = Clock();
  if (at_par.runnable_rate == 0) return lag;
  at_par.free = at_par.free_par;
  at_par.clamped = at_par.clamped_par;
  return std::max(lag, LagAt(at_par, Band(members_[slot])));
}

Duration Fluid::Asked(std::uint32_t slot) const {
  const Member& m = members_[slot];
  return LagOf(m) + m.applied - m.given;
}

}  // namespace gpusched::core
