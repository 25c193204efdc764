// The broken cores and policies. Each is the real one with one thing wrong.
#include "sim/mutants.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "catalog.h"
#include "core/priority_class.h"
#include "sim/unfair_policies.h"

namespace gpusched::sim {
namespace {

// A core that was built from other parts than the checker believes; the simulation's stands aside.
class OwnCore : public Shim {
 public:
  explicit OwnCore(CoreParts parts)
      : own_(parts.limits, parts.traits, std::move(parts.spec), std::move(parts.policy)) {}
  void Handle(core::Scheduler&, Time now, core::Event event) override {
    own_.Handle(now, std::move(event));
  }
  void Advance(core::Scheduler&, Time now, std::vector<core::Action>& actions) override {
    own_.Advance(now, actions);
  }
  Time NextWakeup(const core::Scheduler&) override { return own_.NextWakeup(); }

 private:
  core::Scheduler own_;
};

template <auto Change>
std::unique_ptr<Shim> Built(CoreParts parts) {
  Change(parts);
  return std::make_unique<OwnCore>(std::move(parts));
}

// A core that hears other facts than there are: `Change` says whether it hears the fact at all.
template <auto Change>
class Mishearing final : public Shim {
 public:
  void Handle(core::Scheduler& core, Time now, core::Event event) override {
    if (Change(event)) core.Handle(now, std::move(event));
  }
};

// A core that gives other orders than it should.
template <auto Change>
class Misspeaking final : public Shim {
 public:
  void Advance(core::Scheduler& core, Time now, std::vector<core::Action>& actions) override {
    core.Advance(now, actions);
    Change(actions);
  }
};

template <typename Broken>
std::unique_ptr<Shim> Make(CoreParts) {
  return std::make_unique<Broken>();
}

// Facts, told wrong.
template <typename Fact>
bool Deaf(core::Event& event) {
  return !std::holds_alternative<Fact>(event);
}
template <auto Change>
bool WithShare(core::Event& event) {
  if (auto* opened = std::get_if<core::SessionOpened>(&event))
    Change(opened->session, opened->share);
  if (auto* changed = std::get_if<core::SessionChanged>(&event)) {
    Change(changed->session, changed->share);
  }
  return true;
}
void ForgetMax(SessionId, Share& share) { share.max = kWholeDevice; }
void ForgetStrict(SessionId, Share& share) { share.strict = false; }
void DistortWeight(SessionId id, Share& share) {
  if (id.serial % 2 == 0) share.weight = std::min(10'000, share.weight * 8);
}
// The device seems to take an eighth less than it does.
bool ChargeLess(core::Event& event) {
  if (auto* finished = std::get_if<core::CommandFinished>(&event)) {
    finished->ended -= (finished->ended - finished->started) / 8;
  }
  return true;
}

// Orders, given wrong.
void LoseOneInTwenty(std::vector<core::Action>& actions) {
  std::erase_if(actions, [](const core::Action& action) {
    const auto* finish = std::get_if<core::FinishJob>(&action);
    return finish != nullptr && finish->job->id % 20 == 0;
  });
}
void CallFailureSuccess(std::vector<core::Action>& actions) {
  for (core::Action& action : actions) {
    auto* finish = std::get_if<core::FinishJob>(&action);
    if (finish != nullptr && finish->outcome == core::JobOutcome::kFailed) {
      finish->outcome = core::JobOutcome::kDone;
    }
  }
}
void RunABlockTwice(std::vector<core::Action>& actions) {
  for (core::Action& action : actions) {
    auto* start = std::get_if<core::StartCommand>(&action);
    if (start == nullptr || start->first == 0) continue;
    --start->first;
    ++start->count;
  }
}
void BookMoreThanWas(std::vector<core::Action>& actions) {
  for (core::Action& action : actions) {
    if (auto* record = std::get_if<core::RecordSlice>(&action)) ++record->slice.charged;
  }
}

// Parts, chosen wrong.
void BelieveInClasses(CoreParts& parts) {
  parts.traits.priority_classes = core::kEachPriorityItsOwn;
}
void RaiseBound(CoreParts& parts) { parts.traits.preemption_bound *= 8; }
void HalveWindow(CoreParts& parts) {
  parts.limits.jobs_per_session = std::max(1u, parts.limits.jobs_per_session / 2);
}
void DoubleWindow(CoreParts& parts) { parts.limits.jobs_per_session *= 2; }
void DoubleInFlight(CoreParts& parts) { parts.limits.commands_in_flight *= 2; }
void LosePatience(CoreParts& parts) { parts.limits.starvation_slack = -std::chrono::seconds(10); }
void HaveAllPatience(CoreParts& parts) {
  parts.limits.starvation_slack = std::chrono::hours(1'000);
}

// Takes a job for later than the one that came after it.
class OutOfTurn final : public Shim {
 public:
  void Handle(core::Scheduler& core, Time now, core::Event event) override {
    if (!held_ && std::holds_alternative<core::JobSubmitted>(event)) {
      held_ = std::move(event);
      return;
    }
    core.Handle(now, std::move(event));
    if (held_) core.Handle(now, *std::exchange(held_, std::nullopt));
  }

 private:
  std::optional<core::Event> held_;
};

// Stamps a slice with the generation in force when it ends.
class LatestGeneration final : public Shim {
 public:
  void Handle(core::Scheduler& core, Time now, core::Event event) override {
    if (const auto* changed = std::get_if<core::PolicyChanged>(&event)) {
      latest_ = changed->spec.generation;
    }
    core.Handle(now, std::move(event));
  }
  void Advance(core::Scheduler& core, Time now, std::vector<core::Action>& actions) override {
    core.Advance(now, actions);
    for (core::Action& action : actions) {
      if (const auto* ejected = std::get_if<core::PolicyEjected>(&action)) {
        latest_ = ejected->now.generation;
      }
      auto* record = std::get_if<core::RecordSlice>(&action);
      if (record != nullptr && latest_ != 0) record->slice.generation = latest_;
    }
  }

 private:
  std::uint64_t latest_ = 0;
};

// Misses every seventh occasion to give orders.
class Drowsy final : public Shim {
 public:
  void Advance(core::Scheduler& core, Time now, std::vector<core::Action>& actions) override {
    if (++occasion_ % 7 != 0) core.Advance(now, actions);
  }

 private:
  std::uint64_t occasion_ = 0;
};

// In front of a real policy, which decides as ever but for one thing.
class Distorted : public Policy {
 public:
  explicit Distorted(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}
  ShareRule share_rule() const override { return policy_->share_rule(); }
  void SessionAdded(const SessionView& view) override { policy_->SessionAdded(Seen(view)); }
  void SessionRunnable(const SessionView& view) override { policy_->SessionRunnable(Seen(view)); }
  void SessionIdle(SessionId id) override { policy_->SessionIdle(id); }
  void SessionChanged(const SessionView& view) override { policy_->SessionChanged(Seen(view)); }
  void SessionRemoved(SessionId id) override { policy_->SessionRemoved(id); }
  void Charged(const SessionView& view, Duration charged) override {
    policy_->Charged(Seen(view), charged);
  }
  void SliceEnded(const SliceReport& slice) override { policy_->SliceEnded(slice); }
  Duration LongestWait(const SessionView& view) const override {
    return policy_->LongestWait(view);
  }
  Decision Decide(const DecisionContext& context) override { return policy_->Decide(context); }

 protected:
  virtual SessionView Seen(const SessionView& view) const { return view; }
  Policy& inner() { return *policy_; }

 private:
  std::unique_ptr<Policy> policy_;
};

class UpsideDown final : public Distorted {
 public:
  using Distorted::Distorted;

 private:
  SessionView Seen(const SessionView& view) const override {
    SessionView seen = view;
    seen.share.priority = -view.share.priority;
    return seen;
  }
};

class Dozing final : public Distorted {
 public:
  using Distorted::Distorted;
  Decision Decide(const DecisionContext& context) override {
    constexpr Duration kNap = std::chrono::microseconds(50);
    const Decision decision = inner().Decide(context);
    if (context.current || decision.kind != Decision::Kind::kRun) return decision;
    return ++decisions_ % 20 == 0 ? Decision::Idle(context.now + kNap) : decision;
  }

 private:
  std::uint64_t decisions_ = 0;
};

// Promises no wait at all, and keeps its order.
class BoldPromise final : public Distorted {
 public:
  using Distorted::Distorted;
  Duration LongestWait(const SessionView&) const override { return Duration(0); }
};

template <typename Broken>
std::unique_ptr<Policy> Front(const std::string&, std::unique_ptr<Policy> policy) {
  return std::make_unique<Broken>(std::move(policy));
}
template <typename Broken>
std::unique_ptr<Policy> InsteadOfShares(const std::string& kind, std::unique_ptr<Policy> policy) {
  if (kind != "weighted_share") return policy;
  return std::make_unique<Broken>();
}
// As if the background share were all.
std::unique_ptr<Policy> RescueEverybody(const std::string& kind, std::unique_ptr<Policy> policy) {
  if (kind != "preemptive_priority") return policy;
  return BuildPolicy(kind, std::string_view("background_share=100%,starvation_bound=10ms")).policy;
}

constexpr Mutant kMutants[] = {
    {"believes_in_classes", Rule::kOneAtATime, "takes each priority to have a line of its own",
     Built<BelieveInClasses>},
    {"deaf_to_pause", Rule::kOnlyRunnableStart, "goes on with a paused session",
     Make<Mishearing<Deaf<core::Paused>>>},
    {"deaf_to_loss", Rule::kOnlyRunnableStart, "goes on with a device that is lost",
     Make<Mishearing<Deaf<core::DeviceLost>>>},
    {"out_of_turn", Rule::kInOrderOnce, "takes jobs in another order than they came",
     Make<OutOfTurn>},
    {"runs_a_block_twice", Rule::kInOrderOnce, "starts chunks one block too early",
     Make<Misspeaking<RunABlockTwice>>},
    {"deaf_to_cancel", Rule::kEndsOnce, "goes on with a cancelled job",
     Make<Mishearing<Deaf<core::JobCancelled>>>},
    {"loses_jobs", Rule::kEndsOnce, "forgets to end one job in twenty",
     Make<Misspeaking<LoseOneInTwenty>>},
    {"calls_failure_success", Rule::kEndsOnce, "ends failed jobs as done",
     Make<Misspeaking<CallFailureSuccess>>},
    {"halves_window", Rule::kRefusedForCause, "refuses jobs within the window", Built<HalveWindow>},
    {"charges_less", Rule::kChargedSums, "charges less than the commands took",
     Make<Mishearing<ChargeLess>>},
    {"books_more", Rule::kChargedSums, "records slices a nanosecond too long",
     Make<Misspeaking<BookMoreThanWas>>},
    {"drowsy", Rule::kNeverIdle, "misses every seventh occasion to give orders", Make<Drowsy>},
    {"dozing", Rule::kNeverIdle, "a policy that rests with work waiting", nullptr, Front<Dozing>},
    {"forgets_max", Rule::kMaxKept, "lets sessions pass their max",
     Make<Mishearing<WithShare<ForgetMax>>>},
    {"forgets_strict", Rule::kStrictKept, "lends what is kept for strict sessions",
     Make<Mishearing<WithShare<ForgetStrict>>>},
    {"least_virtual_time", Rule::kAskedAndGot, "serves the least virtual time first", nullptr,
     InsteadOfShares<LeastVirtualTime>},
    {"weighted_round_robin", Rule::kAskedAndGot, "serves everybody in turn by weight", nullptr,
     InsteadOfShares<WeightedRoundRobin>},
    {"distorts_weights", Rule::kAskedAndGot, "gives every second session eight times its weight",
     Make<Mishearing<WithShare<DistortWeight>>>},
    {"bold_promise", Rule::kDeclaredWait,
     "a policy that declares no wait, under a core that never asks", Built<HaveAllPatience>,
     Front<BoldPromise>},
    {"upside_down", Rule::kNoInversion, "a policy that takes low priorities for high", nullptr,
     Front<UpsideDown>},
    {"raises_bound", Rule::kPreemptionBound, "puts eight bounds in flight", Built<RaiseBound>},
    {"rescues_everybody", Rule::kRescuesBounded, "spends the whole device on rescues", nullptr,
     RescueEverybody},
    {"latest_generation", Rule::kOneGeneration, "stamps slices with the policy they end under",
     Make<LatestGeneration>},
    {"doubles_window", Rule::kBoundedQueues, "takes more jobs than the window holds",
     Built<DoubleWindow>},
    {"doubles_in_flight", Rule::kBoundedQueues, "has twice as many commands in flight",
     Built<DoubleInFlight>},
    {"loses_patience", Rule::kSoundPolicyStays, "ejects policies that keep their word",
     Built<LosePatience>},
};

}  // namespace

std::span<const Mutant> AllMutants() { return kMutants; }

}  // namespace gpusched::sim
