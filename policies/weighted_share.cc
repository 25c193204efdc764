// Weighted shares by earliest eligible virtual deadline.
#include "weighted_share.h"

#include <algorithm>

namespace gpusched {

namespace {

// A slice is at most 1.5 % of the window, so that 2 L / T stays at 3 points over it.
constexpr Duration LongestFor(Duration window) { return window * 15 / 1'000; }

// Of a command that is expected to take longer, for whatever reason, no more counts.
constexpr Duration kLongestRequest = std::chrono::seconds(1);

constexpr ParameterSpec kParameters[] = {
    ParameterSpec::OfDuration("slice", std::chrono::microseconds(50),
                              std::chrono::milliseconds(500), std::chrono::milliseconds(1),
                              "device time of a slice"),
    ParameterSpec::OfDuration(
        "window", std::chrono::milliseconds(10), std::chrono::seconds(30),
        std::chrono::milliseconds(100),
        "shares hold to 3 points over it: no slice is longer than 1.5 % of it"),
};
constexpr std::string_view kHonours[] = {"weight", "min", "max", "strict"};

}  // namespace

const PolicyKind kWeightedShare = {
    .name = "weighted_share",
    .promise = "device time by weight between min and max, to 1 point over a second",
    .parameters = kParameters,
    .honours = kHonours,
    .make = &WeightedShare::Make,
};

std::unique_ptr<Policy> WeightedShare::Make(const Parameters& parameters,
                                            std::vector<FieldError>&) {
  return std::make_unique<WeightedShare>(parameters.duration("slice"),
                                         parameters.duration("window"));
}

WeightedShare::WeightedShare(Duration slice, Duration window)
    : length_(std::min(slice, LongestFor(window))), lags_(length_, FairLags::Strays::kByOne) {}

Decision WeightedShare::Decide(const DecisionContext& context) {
  const FluidClock& fluid = lags_.Counted(context.fluid);
  const auto* next = order_.First(fluid, [&fluid](const auto& clamped, const auto& free) {
    return FluidOrder<FluidTime>::ClampedIsEarlier(fluid, clamped.key, free.key);
  });
  if (next == nullptr) return Decision::Idle(kNever);
  const CurrentSlice* current = context.current ? &*context.current : nullptr;
  if (current != nullptr && current->used < current->granted && order_.Contains(current->session) &&
      (next->id == current->session || !HasHadItsDue(fluid, *current))) {
    return Decision::Keep();
  }
  return Decision::Run(next->id, std::min(length_, context.longest_slice));
}

// With what the slice has started it stands beyond par.
bool WeightedShare::HasHadItsDue(const FluidClock& fluid, const CurrentSlice& current) const {
  const Account& account = accounts_[current.session.slot];
  return account.zero_lag + FluidSpan(account, current.used) > fluid.Par(account.band);
}

void WeightedShare::SessionAdded(const SessionView& view) {
  order_.Reserve(view.id.slot);
  lags_.Add(view.id.slot);
  if (view.id.slot >= accounts_.size()) accounts_.resize(std::size_t{view.id.slot} + 1);
}

void WeightedShare::SessionRunnable(const SessionView& view) {
  lags_.Enter(view.id);
  Queue(view);
}

void WeightedShare::SessionIdle(SessionId id) {
  if (!order_.Contains(id)) return;
  lags_.Leave(id);
  order_.Remove(id);
}

void WeightedShare::SessionRemoved(SessionId id) { SessionIdle(id); }

void WeightedShare::SessionChanged(const SessionView& view) {
  if (order_.Contains(view.id)) Queue(view);
}

void WeightedShare::Charged(const SessionView& view, Duration charged) {
  lags_.Charged(charged);
  if (order_.Contains(view.id)) Queue(view);
}

// Eligible once it is owed time, due when the fluid reference will have given it one slice more, or
// one command where that takes longer: many light sessions with long ones would all be due at once.
void WeightedShare::Queue(const SessionView& view) {
  const Account& account = accounts_[view.id.slot] = lags_.Counted(view);
  const Duration request = std::clamp(view.next_command, length_, kLongestRequest);
  lags_.Requested(request);
  order_.Set(view, account.zero_lag, account.zero_lag + FluidSpan(account, request));
}

}  // namespace gpusched
