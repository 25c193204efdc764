// Preemptive priority with deadlines and rescues.
#include "preemptive_priority.h"

#include <algorithm>

namespace gpusched {

namespace {

constexpr std::string_view kSliceMin = "slice.min", kSliceMax = "slice.max",
                           kStarvationBound = "starvation_bound",
                           kBackgroundShare = "background_share";
constexpr PreemptivePriority::Settings kDefaults;

constexpr ParameterSpec kParameters[] = {
    ParameterSpec::OfDuration(kSliceMin, std::chrono::microseconds(50), std::chrono::seconds(1),
                              kDefaults.slice_min, "the first slice of a session"),
    ParameterSpec::OfDuration(kSliceMax, std::chrono::microseconds(50), std::chrono::seconds(1),
                              kDefaults.slice_max,
                              "slices double up to it while nothing else is chosen"),
    ParameterSpec::OfDuration(kStarvationBound, std::chrono::milliseconds(10),
                              std::chrono::hours(1), kDefaults.starvation_bound,
                              "who waited that long is rescued"),
    ParameterSpec::OfFraction(kBackgroundShare, 0, kWholeDevice, kDefaults.background_share,
                              "what rescues may take; 0: there are none"),
};
constexpr std::string_view kHonours[] = {"priority", "latency_target", "max", "strict"};

}  // namespace

const PolicyKind kPreemptivePriority = {
    .name = "preemptive_priority",
    .promise = "a higher arrival waits for one preemption bound plus one rescue at most",
    .parameters = kParameters,
    .honours = kHonours,
    .make = &PreemptivePriority::Make,
};

std::unique_ptr<Policy> PreemptivePriority::Make(const Parameters& parameters,
                                                 std::vector<FieldError>& errors) {
  const Settings settings{.slice_min = parameters.duration(kSliceMin),
                          .slice_max = parameters.duration(kSliceMax),
                          .starvation_bound = parameters.duration(kStarvationBound),
                          .background_share = parameters.fraction(kBackgroundShare)};
  if (settings.slice_min > settings.slice_max) {
    errors.push_back(
        {std::string(kSliceMin), "is longer than slice.max; make it shorter or both equal"});
    return nullptr;
  }
  return std::make_unique<PreemptivePriority>(settings);
}

PreemptivePriority::PreemptivePriority(const Settings& settings)
    : settings_(settings), budget_(settings.background_share) {}

Decision PreemptivePriority::Decide(const DecisionContext& context) {
  now_ = context.now;
  rescue_runs_ = context.current && context.current->rescue;
  rescued_ = rescue_runs_ ? context.current->session : SessionId{};
  preemption_bound_ = context.preemption_bound;
  const CurrentSlice* current = Unfinished(context);
  if (order_.empty()) return Decision::Idle(kNever);
  const Candidate& first = candidates_[First(context.now, current)];
  if (current != nullptr && current->rescue) return Decision::Keep();

  Time ask_again = kNever;
  if (rescue_drains_ || rescue_runs_) {
    // One is paid for before the next, and what it cost is known when it has drained.
    ask_again = After(context.now, preemption_bound_);
  } else if (const Candidate* starving = LongestWaiting(first.id.slot, context.current)) {
    const Time due =
        std::max(After(starving->waiting_since, settings_.starvation_bound), budget_.full_at());
    if (due <= context.now) {
      rescued_ = starving->id;
      return Decision::Rescue(starving->id, std::min(preemption_bound_, context.longest_slice));
    }
    ask_again = due;
  }
  if (current != nullptr && !Preempts(first, *current, context.now)) {
    return Decision::Keep(ask_again);
  }
  return Decision::Run(first.id, std::min(SliceFor(first.id), context.longest_slice), ask_again);
}

// The slice in progress, if it may go on.
const CurrentSlice* PreemptivePriority::Unfinished(const DecisionContext& context) const {
  if (!context.current || context.current->used >= context.current->granted) return nullptr;
  return order_.Contains(context.current->session.slot) ? &*context.current : nullptr;
}

// Whoever is found late at the top takes its place among the late: once for each job.
PreemptivePriority::Slot PreemptivePriority::First(Time now, const CurrentSlice* current) {
  while (true) {
    const Slot slot = order_.top_slot();
    const Candidate& candidate = candidates_[slot];
    if (order_.top().late() || !IsLate(candidate, now, current)) return slot;
    order_.Set(slot, Rank::Late(candidate));
  }
}

// What the current slice has started counts as done.
bool PreemptivePriority::IsLate(const Candidate& candidate, Time now,
                                const CurrentSlice* current) const {
  const bool running = current != nullptr && current->session == candidate.id;
  return now > (running ? After(candidate.latest_start, current->used) : candidate.latest_start);
}

bool PreemptivePriority::Preempts(const Candidate& first, const CurrentSlice& current,
                                  Time now) const {
  if (first.id == current.session) return false;
  const Candidate& running = candidates_[current.session.slot];
  if (first.priority != running.priority) return first.priority > running.priority;
  if (order_.KeyOf(first.id.slot).late() || IsLate(running, now, &current)) return false;
  return After(now, first.work) <= After(running.latest_start, current.used);
}

// The one that has waited longest beside the two that are being served, be it with a slice that is
// used up, or about to be.
const PreemptivePriority::Candidate* PreemptivePriority::LongestWaiting(
    Slot first, const std::optional<CurrentSlice>& current) const {
  const auto served = [&](Slot slot) {
    return slot == first || (current && slot == current->session.slot);
  };
  Slot slot = waiting_.top_slot();
  if (served(slot)) {
    if (waiting_.size() < 2) return nullptr;
    slot = waiting_.second_slot();
    if (served(slot)) return nullptr;  // looked for again when one of the two has been served
  }
  return &candidates_[slot];
}

// Slices grow while the same session is chosen again and again.
Duration PreemptivePriority::SliceFor(SessionId id) const {
  return id == latest_ended_ ? next_in_row_ : settings_.slice_min;
}

void PreemptivePriority::SessionAdded(const SessionView& view) {
  const Slot slot = view.id.slot;
  if (slot >= candidates_.size()) candidates_.resize(std::size_t{slot} + 1);
  order_.Reserve(slot);
  waiting_.Reserve(slot);
}

void PreemptivePriority::SessionRunnable(const SessionView& view) {
  Queue(view);
  most_waiting_ = std::max(most_waiting_, static_cast<std::int64_t>(waiting_.size()));
}

void PreemptivePriority::SessionIdle(SessionId id) {
  order_.Remove(id.slot);
  waiting_.Remove(id.slot);
}

void PreemptivePriority::SessionRemoved(SessionId id) { SessionIdle(id); }

void PreemptivePriority::SessionChanged(const SessionView& view) {
  if (order_.Contains(view.id.slot)) Queue(view);
}

void PreemptivePriority::Charged(const SessionView& view, Duration charged) {
  // An answer that was not acted upon served nobody: what is charged is an earlier slice's.
  if (view.id == rescued_ && (rescue_runs_ || view.account.last_served == now_)) {
    // An estimate may be too low; what is missing is settled when the slice has drained.
    budget_.Spend(now_, std::max(charged, preemption_bound_));
    rescued_ = SessionId{};
    rescue_drains_ = true;
  }
  if (order_.Contains(view.id.slot)) Queue(view);
}

void PreemptivePriority::SliceEnded(const SliceReport& slice) {
  const bool in_a_row = slice.session == latest_ended_;
  next_in_row_ = in_a_row ? std::min(next_in_row_ * 2, settings_.slice_max) : settings_.slice_min;
  latest_ended_ = slice.session;
  if (!slice.rescue) return;
  rescue_drains_ = false;
  budget_.Settle(slice);
  longest_rescue_ = std::max(longest_rescue_, slice.charged);
}

void PreemptivePriority::Queue(const SessionView& view) {
  const Slot slot = view.id.slot;
  Candidate& candidate = candidates_[slot];
  candidate = {.id = view.id,
               .priority = view.share.priority,
               .latest_start = view.deadline - view.estimated_work,
               .since = view.deadline - view.share.latency_target,
               .waiting_since = view.waiting_since,
               .work = view.estimated_work,
               .target = view.share.latency_target > Duration(0) ? view.share.latency_target
                                                                 : settings_.starvation_bound};
  Time deadline = view.deadline;
  if (deadline == kNever) {
    deadline = After(view.waiting_since, settings_.starvation_bound);
    candidate.latest_start = deadline;
    candidate.since = view.waiting_since;
  }
  longest_rescue_ = std::max(longest_rescue_, view.next_command);
  order_.Set(slot, Rank::InTime(candidate, deadline));
  waiting_.Set(slot, {candidate.waiting_since, candidate.id.serial});
}

Duration PreemptivePriority::LongestWait(const SessionView&) const {
  const Duration rescue = std::max(preemption_bound_, longest_rescue_);
  return Plus(Plus(settings_.starvation_bound, budget_.Refill(rescue * most_waiting_)),
              preemption_bound_);
}

}  // namespace gpusched
