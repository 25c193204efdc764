// Round robin by device time.
#include "round_robin.h"

#include <algorithm>

namespace gpusched {

namespace {

constexpr ParameterSpec kParameters[] = {
    ParameterSpec::OfDuration("slice", std::chrono::microseconds(50),
                              std::chrono::milliseconds(500), std::chrono::milliseconds(1),
                              "device time a turn is worth before what is owed"),
};
constexpr std::string_view kHonours[] = {"max", "strict"};

}  // namespace

const PolicyKind kRoundRobin = {
    .name = "round_robin",
    .promise = "equal device time to all who have work",
    .parameters = kParameters,
    .honours = kHonours,
    .make = &RoundRobin::Make,
};

std::unique_ptr<Policy> RoundRobin::Make(const Parameters& parameters, std::vector<FieldError>&) {
  return std::make_unique<RoundRobin>(parameters.duration("slice"));
}

RoundRobin::RoundRobin(Duration slice)
    : slice_(slice),
      least_turn_(slice / 2),
      longest_turn_(slice * 2),
      lags_(slice, FairLags::Strays::kByCrowd) {}

Decision RoundRobin::Decide(const DecisionContext& context) {
  const FluidClock& fluid = lags_.Counted(context.fluid);
  if (context.current && context.current->used < context.current->granted &&
      order_.Contains(context.current->session)) {
    chosen_ = context.current->session;
    return Decision::Keep();
  }
  const auto* next = order_.First(
      fluid, [](const auto& clamped, const auto& free) { return clamped.key < free.key; });
  if (next == nullptr) return Decision::Idle(kNever);
  chosen_ = next->id;
  return Decision::Run(next->id, std::min(LengthOfTurn(fluid, next->id), context.longest_slice));
}

// A slice, plus what the session is owed at par (negative: what it owes).
Duration RoundRobin::LengthOfTurn(const FluidClock& fluid, SessionId id) const {
  FluidClock at_par = fluid;
  at_par.free = fluid.free_par;
  at_par.clamped = fluid.clamped_par;
  return std::clamp(slice_ + LagAt(at_par, accounts_[id.slot]), least_turn_, longest_turn_);
}

void RoundRobin::SessionAdded(const SessionView& view) {
  const std::uint32_t slot = view.id.slot;
  order_.Reserve(slot);
  lags_.Add(slot);
  if (slot >= turns_.size()) {
    turns_.resize(std::size_t{slot} + 1);
    accounts_.resize(std::size_t{slot} + 1);
  }
}

void RoundRobin::SessionRunnable(const SessionView& view) {
  lags_.Enter(view.id);
  turns_[view.id.slot] = ++last_turn_;
  Queue(view);
}

void RoundRobin::SessionIdle(SessionId id) {
  if (!order_.Contains(id)) return;
  lags_.Leave(id);
  order_.Remove(id);
}

void RoundRobin::SessionRemoved(SessionId id) { SessionIdle(id); }

void RoundRobin::SessionChanged(const SessionView& view) {
  if (order_.Contains(view.id)) Queue(view);
}

// The first charge after a session was chosen ends its turn; later ones are corrections.
void RoundRobin::Charged(const SessionView& view, Duration charged) {
  lags_.Charged(charged);
  if (!order_.Contains(view.id)) return;
  if (view.id == chosen_) {
    turns_[view.id.slot] = ++last_turn_;
    chosen_ = SessionId{};
  }
  Queue(view);
}

void RoundRobin::Queue(const SessionView& view) {
  const Account& account = accounts_[view.id.slot] = lags_.Counted(view);
  const FluidTime eligible = account.zero_lag - FluidSpan(account, slice_ - least_turn_);
  order_.Set(view, eligible, turns_[view.id.slot]);
}

}  // namespace gpusched
