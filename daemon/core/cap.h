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
  void SetBurst(Duration burst) { burst_ = burst; }
  bool limited() const { return rate_ < kWholeDevice; }

  // Negative: given back.
  void Take(Duration spent) { tokens_ -= spent; }
  // Without a limit it fills with time itself: what is in flight when one is set has been taken.
  void Fill(Time now) {
    if (now <= filled_) return;
    if (!limited()) {
      tokens_ = std::min(tokens_ + std::min(now - filled_, burst_ - tokens_), burst_);
      filled_ = now;
      return;
    }
    const Wide parts = Wide{(now - filled_).count()} * rate_ + remainder_;
    filled_ = now;
    remainder_ = static_cast<std::int64_t>(parts % kWholeDevice);
    const Wide tokens = Wide{tokens_.count()} + parts / kWholeDevice;
    tokens_ = Duration(static_cast<std::int64_t>(std::min<Wide>(tokens, burst_.count())));
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
  Rate rate_ = kWholeDevice;
  Duration burst_{0};
  Duration tokens_{0};
  std::int64_t remainder_ =
      0;  // parts per billion of a nanosecond, so that nothing is lost to rounding
  Time filled_{};
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
  // Without a limit it is not reached and cannot be: nothing to refresh.
  bool idle() const { return !limited() && !reached_; }
  // Whether `reached` is another answer now.
  bool Refresh(Time now, Duration burst, Duration resume) {
    cap_.SetBurst(burst);
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
