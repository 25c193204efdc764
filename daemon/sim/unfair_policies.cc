// Small and wrong on purpose.
#include "sim/unfair_policies.h"

#include <algorithm>
#include <limits>

namespace gpusched::sim {
namespace {

constexpr Duration kSlice = std::chrono::milliseconds(1);
constexpr std::int64_t kOrdinaryWeight = 100;

bool MayKeep(const DecisionContext& context, const RunnableSet& runnable) {
  return context.current && context.current->used < context.current->granted &&
         runnable.Contains(context.current->session);
}

// Any of them, by number.
SessionId Nth(const RunnableSet& runnable, std::uint64_t n) {
  for (const SessionId id : runnable.slots()) {
    if (id.serial != 0 && n-- == 0) return id;
  }
  return {};
}

}  // namespace

void LeastVirtualTime::SessionAdded(const SessionView& view) {
  if (view.id.slot >= clocks_.size()) clocks_.resize(view.id.slot + 1);
  clocks_[view.id.slot] = {};
  SessionChanged(view);
}

void LeastVirtualTime::SessionChanged(const SessionView& view) {
  clocks_[view.id.slot].weight = view.share.weight;
}

// Whoever comes starts with the least there is: it neither catches up nor owes.
void LeastVirtualTime::SessionRunnable(const SessionView& view) {
  double least = std::numeric_limits<double>::max();
  for (const SessionId id : runnable_.slots()) {
    if (id.serial != 0) least = std::min(least, clocks_[id.slot].virtual_time);
  }
  double& own = clocks_[view.id.slot].virtual_time;
  if (runnable_.count() > 0) own = std::max(own, least);
  runnable_.Add(view.id);
}

void LeastVirtualTime::Charged(const SessionView& view, Duration charged) {
  Clock& clock = clocks_[view.id.slot];
  clock.virtual_time += static_cast<double>(charged.count()) / clock.weight;
}

Decision LeastVirtualTime::Decide(const DecisionContext& context) {
  if (MayKeep(context, runnable_)) return Decision::Keep();
  const SessionId* next = nullptr;
  for (const SessionId& id : runnable_.slots()) {
    if (id.serial == 0) continue;
    if (next == nullptr || clocks_[id.slot].virtual_time < clocks_[next->slot].virtual_time) {
      next = &id;
    }
  }
  if (next == nullptr) return Decision::Idle(kNever);
  return Decision::Run(*next, std::min(kSlice, context.longest_slice));
}

void WeightedRoundRobin::SessionAdded(const SessionView& view) {
  if (view.id.slot >= weights_.size()) weights_.resize(view.id.slot + 1);
  weights_[view.id.slot] = view.share.weight;
}

Decision WeightedRoundRobin::Decide(const DecisionContext& context) {
  if (MayKeep(context, runnable_)) return Decision::Keep();
  if (runnable_.count() == 0) return Decision::Idle(kNever);
  const std::vector<SessionId>& slots = runnable_.slots();
  if (served_) turn_ = (turn_ + 1) % slots.size();
  served_ = false;
  while (slots[turn_ % slots.size()].serial == 0) turn_ = (turn_ + 1) % slots.size();
  const SessionId id = slots[turn_ % slots.size()];
  const Duration turn = std::max(Duration(1), kSlice * weights_[id.slot] / kOrdinaryWeight);
  return Decision::Run(id, std::min(turn, context.longest_slice));
}

Decision Nonsense::Decide(const DecisionContext& context) {
  const SessionId any =
      runnable_.count() > 0 ? Nth(runnable_, random_.Below(runnable_.count())) : SessionId{};
  switch (random_.Below(40)) {
    case 0: return Decision::Run({.slot = 3, .serial = 999'999'999}, kSlice);
    case 1: return Decision::Run(any, Duration(0));
    case 2: return Decision::Run(any, Duration(-1));
    case 3: return Decision::Run(any, context.longest_slice + Duration(1));
    case 4: return Decision::Idle(kNever);
    case 5: return Decision::Keep();
    case 6: {
      Decision unknown;
      unknown.kind = static_cast<Decision::Kind>(17);
      return unknown;
    }
    case 7: return Decision::Run(any, kSlice, context.now - kSlice);
    default: break;
  }
  if (any.serial == 0) return Decision::Idle(kNever);
  return Decision::Run(any, std::min(kSlice, context.longest_slice));
}

Decision Hesitant::Decide(const DecisionContext& context) {
  if (MayKeep(context, runnable_)) return Decision::Keep();
  if (runnable_.count() == 0) return Decision::Idle(kNever);
  if (rests_until_ > context.now) return Decision::Idle(rests_until_);
  if (random_.Once(8)) {
    rests_until_ = context.now + random_.Between(Duration(1'000), kSlice);
    return Decision::Idle(rests_until_);
  }
  return Decision::Run(Nth(runnable_, random_.Below(runnable_.count())),
                       std::min(kSlice, context.longest_slice));
}

}  // namespace gpusched::sim
