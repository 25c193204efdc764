// Shortest job first, with patience.
#include "shortest_job_first.h"

#include <algorithm>
#include <chrono>

namespace sample {

using gpusched::Decision;
using gpusched::Duration;

namespace {

constexpr gpusched::ParameterSpec kParameters[] = {
    gpusched::ParameterSpec::OfDuration(
        "slice", std::chrono::microseconds(50), std::chrono::milliseconds(500),
        std::chrono::milliseconds(2), "how long a session runs before the choice is made again"),
    gpusched::ParameterSpec::OfDuration("patience", std::chrono::milliseconds(1),
                                        std::chrono::hours(1), std::chrono::milliseconds(500),
                                        "who waited that long goes first, however long its job"),
};

}  // namespace

const gpusched::PolicyKind kShortestJobFirst = {
    .name = "shortest_job_first",
    .promise = "the smallest mean waiting time, and nobody waits for long",
    .parameters = kParameters,
    .honours = {},
    .make = &ShortestJobFirst::Make,
};

std::unique_ptr<gpusched::Policy> ShortestJobFirst::Make(const gpusched::Parameters& parameters,
                                                         std::vector<gpusched::FieldError>&) {
  return std::make_unique<ShortestJobFirst>(parameters.duration("slice"),
                                            parameters.duration("patience"));
}

ShortestJobFirst::ShortestJobFirst(Duration slice, Duration patience)
    : slice_(slice), patience_(patience) {}

Decision ShortestJobFirst::Decide(const gpusched::DecisionContext& context) {
  if (by_work_.empty()) return Decision::Idle(gpusched::kNever);
  if (context.current && context.current->used < context.current->granted &&
      by_work_.Contains(context.current->session.slot)) {
    return Decision::Keep();
  }
  const bool impatient = gpusched::After(by_wait_.top().since, patience_) <= context.now;
  const std::uint32_t slot = impatient ? by_wait_.top_slot() : by_work_.top_slot();
  return Decision::Run(ids_[slot], std::min(slice_, context.longest_slice));
}

// The only place that allocates: tables grow when a session opens.
void ShortestJobFirst::SessionAdded(const gpusched::SessionView& view) {
  const std::uint32_t slot = view.id.slot;
  if (slot >= ids_.size()) ids_.resize(std::size_t{slot} + 1);
  ids_[slot] = view.id;
  by_work_.Reserve(slot);
  by_wait_.Reserve(slot);
}

void ShortestJobFirst::SessionRunnable(const gpusched::SessionView& view) {
  Queue(view);
  most_runnable_ = std::max(most_runnable_, by_work_.size());
}

void ShortestJobFirst::SessionIdle(gpusched::SessionId id) {
  by_work_.Remove(id.slot);
  by_wait_.Remove(id.slot);
}

void ShortestJobFirst::SessionRemoved(gpusched::SessionId id) { SessionIdle(id); }

void ShortestJobFirst::SessionChanged(const gpusched::SessionView& view) {
  if (by_work_.Contains(view.id.slot)) Queue(view);
}

void ShortestJobFirst::Charged(const gpusched::SessionView& view, Duration charged) {
  longest_slice_ = std::max(longest_slice_, charged);
  SessionChanged(view);
}

// Every notice carries the session as it is now, so its keys are simply made anew.
void ShortestJobFirst::Queue(const gpusched::SessionView& view) {
  by_work_.Set(view.id.slot, {view.estimated_work, view.id.serial});
  by_wait_.Set(view.id.slot, {view.waiting_since, view.id.serial});
}

// Once impatient, a session waits for those who grew impatient before it: a slice each.
Duration ShortestJobFirst::LongestWait(const gpusched::SessionView&) const {
  const auto others = static_cast<std::int64_t>(most_runnable_);
  return gpusched::Plus(patience_, others * (slice_ + longest_slice_));
}

}  // namespace sample
