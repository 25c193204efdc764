// A stage for one fair policy: a small cast of sessions, exact slices, a fluid clock kept by the
// book.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "gpusched/policy/policy.h"

namespace gpusched::testing {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Free sessions share what the clamped leave, by weight; both are the test's to say. Everything is
// recomputed from the definitions in policy/account.h at every step, with a loop over the cast.
class Stage {
 public:
  explicit Stage(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}

  // A session that wants the device always. `command`: what it runs cannot be cut below that.
  SessionId Add(std::int64_t weight = 1, Duration command = Duration(0)) {
    return Enter({.weight = weight, .command = command});
  }
  // One whose rate stands at its min or max.
  SessionId AddClamped(Rate rate) { return Enter({.rate = rate}); }

  void Sleep(SessionId id) {
    Actor& actor = cast_[id.slot];
    actor.lag = LagAt(Clock(), AccountOf(actor));
    actor.awake = false;
    policy_->SessionIdle(id);
  }
  void Wake(SessionId id) {
    Actor& actor = cast_[id.slot];
    actor.awake = true;
    actor.waiting_since = now_;
    actor.zero_lag = 0;
    const FluidTime reading = Clock().Reading(AccountOf(actor).band);
    actor.zero_lag = reading - FluidSpan(AccountOf(actor), actor.lag);
    policy_->SessionRunnable(View(actor));
  }
  void GiveLag(SessionId id, Duration lag) { cast_[id.slot].lag = lag; }

  Decision Ask(std::optional<CurrentSlice> current = std::nullopt) {
    DecisionContext context;
    context.now = now_;
    context.current = current;
    context.fluid = Clock();
    context.preemption_bound = milliseconds(1);
    context.longest_slice = seconds(1);
    return policy_->Decide(context);
  }

  // One slice: asked, run to the end of its budget (or of the command that crosses it), charged.
  SessionId Step() {
    const Decision decision = Ask();
    if (decision.kind != Decision::Kind::kRun) std::abort();
    Actor& actor = cast_[decision.session.slot];
    Duration used = decision.length;
    if (actor.command > Duration(0)) {
      used = actor.command * ((decision.length + actor.command - Duration(1)) / actor.command);
    }
    const Time started = now_;
    longest_wait_ = std::max(longest_wait_, now_ - actor.waiting_since);
    Advance(used);
    actor.zero_lag += FluidSpan(AccountOf(actor), used);
    actor.got += used;
    actor.last_served = started;
    actor.waiting_since = now_;
    policy_->Charged(View(actor), used);
    policy_->SessionChanged(View(actor));
    policy_->SliceEnded({.session = actor.id, .started = started, .ended = now_, .charged = used});
    return actor.id;
  }
  void RunFor(Duration time) {
    for (const Time end = now_ + time; now_ < end;) Step();
  }

  Time now() const { return now_; }
  Duration Got(SessionId id) const { return cast_[id.slot].got; }
  Duration Lag(SessionId id) const { return LagAt(Clock(), AccountOf(cast_[id.slot])); }
  Duration longest_wait() const { return longest_wait_; }
  Policy& policy() { return *policy_; }
  SessionView View(SessionId id) const { return View(cast_[id.slot]); }

 private:
  struct Actor {
    SessionId id{};
    std::int64_t weight = 0;
    Rate rate = 0;  // clamped there, if not zero
    Duration command{0};
    bool awake = false;
    Duration lag{0};         // while asleep
    FluidTime zero_lag = 0;  // while awake
    Duration got{0};
    Time last_served{}, waiting_since{};
  };

  SessionId Enter(Actor actor) {
    actor.id = {.slot = static_cast<std::uint32_t>(cast_.size()), .serial = cast_.size() + 1};
    cast_.push_back(actor);
    policy_->SessionAdded(View(cast_.back()));
    Wake(actor.id);
    return actor.id;
  }

  Rate FreeRate() const {
    Rate rate = kWholeDevice;
    for (const Actor& a : cast_) rate -= a.awake ? a.rate : 0;
    return rate;
  }
  std::int64_t FreeWeight() const {
    std::int64_t weight = 0;
    for (const Actor& a : cast_) weight += a.awake && a.rate == 0 ? a.weight : 0;
    return weight;
  }

  void Advance(Duration time) {
    now_ += time;
    const Wide scaled = Wide{time.count()} << kFluidBits;
    clamped_ += scaled;
    if (FreeWeight() > 0) free_ += scaled * FreeRate() / (Wide{FreeWeight()} * kWholeDevice);
  }

  FluidClock Clock() const {
    FluidClock clock;
    clock.free = free_;
    clock.clamped = clamped_;
    clock.free_rate = FreeRate();
    clock.free_weight = FreeWeight();
    clock.runnable_rate = kWholeDevice;  // everybody who is awake can run
    Wide lag = 0;                        // summed, in nanoseconds x 2^kFluidBits
    for (const Actor& a : cast_) {
      if (!a.awake) continue;
      lag += a.rate > 0 ? (clamped_ - a.zero_lag) / kWholeDevice * a.rate
                        : (free_ - a.zero_lag) * a.weight;
    }
    // Everybody's rates sum to the device, so each is owed its rate x lag at par.
    constexpr FluidTime kRounding = 1 << 12;
    clock.clamped_par = clamped_ - lag + kRounding;
    clock.free_par = free_ + kRounding;
    if (clock.free_weight > 0) {
      clock.free_par -= lag / clock.free_weight * clock.free_rate / kWholeDevice;
    }
    return clock;
  }

  Account AccountOf(const Actor& actor) const {
    Account account;
    account.charged = actor.got;
    account.last_served = actor.last_served;
    account.fluid_weight = actor.weight;
    if (actor.awake) {
      account.band = actor.rate > 0 ? RateBand::kClamped : RateBand::kFree;
      account.rate = actor.rate > 0 ? actor.rate : FreeRate() * actor.weight / FreeWeight();
      account.zero_lag = actor.zero_lag;
    }
    account.lag = actor.lag;
    return account;
  }

  SessionView View(const Actor& actor) const {
    SessionView view;
    view.id = actor.id;
    view.account = AccountOf(actor);
    view.account.lag = LagAt(Clock(), view.account);
    view.waiting_since = actor.awake ? actor.waiting_since : kNever;
    view.next_command = actor.command;
    return view;
  }

  std::unique_ptr<Policy> policy_;
  std::vector<Actor> cast_;
  Time now_{seconds(1)};
  FluidTime free_ = 0, clamped_ = 0;
  Duration longest_wait_{0};
};

}  // namespace gpusched::testing
