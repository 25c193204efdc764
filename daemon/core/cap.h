// An upper limit on device time: a bucket of tokens that fills at a rate and that charges empty.
#pragma once

#include <algorithm>

#include "gpusched/policy/account.h"
#include "gpusched/policy/types.h"

namespace gpusched::core {

class Cap {
 public:
  // Tokens survive a change of rate, so that no change refills them.
  void SetRate(Time now, Rate rate, Duration burst) {
    Fill(now);
    rate_ = rate;
    burst_ = burst;
    tokens_ = std::min(tokens_, burst_);
  }
  // Of what there is more than that much is lost.
  void LimitTo(Duration burst) {
    burst_ = burst;
    tokens_ = std::min(tokens_, burst);
  }
  // What there is stays, and nothing is added beyond that much.
  void SetBurst(Duration burst) { burst_ = burst; }
  Duration burst() const { return burst_; }
  bool limited() const { return rate_ < kWholeDevice; }

  void Take(Duration spent) {
    tokens_ -= spent;
    spilled_ = Duration::zero();
  }
  // `busy` was spent, `beyond` more than was taken for it before; negative: less. Had it been taken
  // as it was spent, what came in meanwhile would not have spilled: a command of unknown length
  // would empty the bucket although it was shorter than the pause before it.
  void TakeLate(Duration beyond, Duration busy) {
    const Duration room = burst_ - (tokens_ - beyond);
    const Duration back = std::min({spilled_, beyond, ComesIn(busy), room});
    Take(beyond - std::max(back, Duration::zero()));
  }
  // Somebody else was busy for so long: what spilled meanwhile had no chance to be spent.
  void WaitedFor(Duration busy) {
    const Duration came = ComesIn(busy);
    const Duration room = std::max(burst_ + came - tokens_, Duration::zero());
    tokens_ += std::min({spilled_, came, room});
    spilled_ = Duration::zero();
  }
  // Without a limit it fills with time itself: what is in flight when one is set has been taken.
  void Fill(Time now) {
    if (now <= filled_) return;
    Duration came = now - filled_;
    filled_ = now;
    if (limited()) {
      const Wide parts = Wide{came.count()} * rate_ + remainder_;
      remainder_ = static_cast<std::int64_t>(parts % kWholeDevice);
      came = Duration(static_cast<std::int64_t>(parts / kWholeDevice));
    }
    const Duration kept = std::min(came, std::max(burst_ - tokens_, Duration::zero()));
    tokens_ += kept;
    spilled_ = std::min(spilled_ + (came - kept), kMostSpilled);
  }

  bool Empty() const { return limited() && tokens_ <= Duration::zero(); }
  // When, with nothing more spent, there will be `wanted` tokens.
  Time FullAgain(Duration wanted) const {
    if (!limited() || tokens_ >= wanted) return filled_;
    if (rate_ <= 0) return kNever;
    const Wide missing = Wide{(wanted - tokens_).count()} * kWholeDevice / rate_ + 1;
    return After(filled_,
                 Duration(static_cast<std::int64_t>(std::min<Wide>(missing, INT64_MAX / 2))));
  }

 private:
  // Longer than any command may take before the device counts as stuck.
  static constexpr Duration kMostSpilled = std::chrono::hours(1);

  Duration ComesIn(Duration busy) const {
    if (!limited()) return busy;
    return Duration(static_cast<std::int64_t>(Wide{busy.count()} * rate_ / kWholeDevice));
  }

  Rate rate_ = kWholeDevice;
  Duration burst_{0};
  Duration tokens_{0};
  Duration spilled_{0};  // that found no room, since the latest Take
  std::int64_t remainder_ =
      0;  // parts per billion of a nanosecond, so that nothing is lost to rounding
  Time filled_{};
};

// The longest of late: in this second or the one before. What one long command lets be saved up is
// to be forgotten with it.
class RecentLongest {
 public:
  void Note(Time now, Duration length) {
    Roll(now);
    this_window_ = std::max(this_window_, length);
  }
  Duration At(Time now) {
    Roll(now);
    return std::max(this_window_, last_window_);
  }

 private:
  static constexpr Duration kWindow = std::chrono::seconds(1);

  void Roll(Time now) {
    if (now - begin_ < kWindow) return;
    last_window_ = now - begin_ < 2 * kWindow ? this_window_ : Duration::zero();
    this_window_ = Duration::zero();
    begin_ = now;
  }

  Time begin_{};
  Duration this_window_{0}, last_window_{0};
};

// A cap on several sessions together. Once it is reached they wait until `resume` has been saved
// up, so that they are not told to stop and go with every command.
class GroupCap {
 public:
  explicit GroupCap(Duration burst) { cap_.SetRate(Time{}, kWholeDevice, burst); }

  void SetRate(Time now, Rate rate, Duration burst) { cap_.SetRate(now, rate, burst); }
  bool limited() const { return cap_.limited(); }
  bool reached() const { return reached_; }
  void Take(Time now, Duration spent) {
    cap_.Fill(now);
    cap_.Take(spent);
  }
  void TakeLate(Time now, Duration beyond, Duration busy) {
    cap_.Fill(now);
    cap_.TakeLate(beyond, busy);
  }
  void WaitedFor(Time now, Duration busy) {
    cap_.Fill(now);
    cap_.WaitedFor(busy);
  }
  // Without a limit it is not reached and cannot be: nothing to refresh.
  bool idle() const { return !limited() && !reached_; }
  // Whether `reached` is another answer now.
  bool Refresh(Time now, Duration burst, Duration resume) {
    // What was saved up beside a long command goes with the leave to do so.
    burst < cap_.burst() ? cap_.LimitTo(burst) : cap_.SetBurst(burst);
    cap_.Fill(now);
    const bool before = reached_;
    reached_ = before ? limited() && EndsAt(resume) > now : cap_.Empty();
    return reached_ != before;
  }
  Time EndsAt(Duration resume) const { return cap_.FullAgain(resume); }

 private:
  Cap cap_;
  bool reached_ = false;
};

}  // namespace gpusched::core
