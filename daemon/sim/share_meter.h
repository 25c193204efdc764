// Asked and got: what the fluid reference would have given each session, beside what it was given.
//
// Asked is the integral of a session's rate over the time in which the device was charged to
// somebody or only caps kept it idle. A session that closes takes what it is owed or owes with it:
// it is spread over the rest by their rates.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "gpusched/policy/policy.h"
#include "gpusched/policy/types.h"
#include "sim/fluid_reference.h"

namespace gpusched::sim {

class ShareMeter {
 public:
  // Changes of the set, each at a time not before the last one.
  void SetRule(Time, ShareRule);
  void Open(Time, std::uint32_t slot, const Share&);
  void Change(Time, std::uint32_t slot, const Share&);
  void SetWork(Time, std::uint32_t slot, bool has_work);
  void Close(Time, std::uint32_t slot);

  // Fluid time passes over [from, to), but for what of it has passed already.
  void Pass(Time from, Time to);
  void Charge(std::uint32_t slot, Duration charged) {
    members_[slot].got += static_cast<double>(charged.count());
  }

  ShareRule rule() const { return rule_; }
  std::size_t slots() const { return members_.size(); }
  bool open(std::uint32_t slot) const { return members_[slot].open; }
  bool has_work(std::uint32_t slot) const { return members_[slot].fluid.has_work; }
  double rate(std::uint32_t slot) const { return members_[slot].fluid.rate; }
  // In nanoseconds since it opened.
  double Asked(std::uint32_t slot) const { return members_[slot].asked; }
  double Got(std::uint32_t slot) const { return members_[slot].got; }
  double Lag(std::uint32_t slot) const { return members_[slot].asked - members_[slot].got; }
  // What of its lag others left it as they closed: neither asked nor got.
  double Spread(std::uint32_t slot) const { return members_[slot].spread; }
  // How far the one furthest from its rate's part of all lags is from it, of those with work.
  double FurthestFromPar() const;

 private:
  struct Member {
    FluidMember fluid;
    bool open = false;
    double asked = 0, got = 0, spread = 0;
  };
  // The rates in force from an instant on.
  struct Stretch {
    Time from{};
    std::vector<double> rates;  // by slot
  };

  void Moved(Time);

  ShareRule rule_ = ShareRule::kNone;
  std::vector<Member> members_;  // by slot
  std::deque<Stretch> stretches_;
  Time passed_to_{};
  std::vector<FluidMember*> open_;  // scratch
};

}  // namespace gpusched::sim
