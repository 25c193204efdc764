// One line of numbers for each fact and order.
#include "sim/recent.h"

#include <type_traits>
#include <variant>

namespace gpusched::sim {

void Recent::OnEvent(Time now, const core::Event& event) {
  std::visit(
      [&](const auto& fact) {
        using Fact = std::decay_t<decltype(fact)>;
        if constexpr (std::is_same_v<Fact, core::SessionOpened>) {
          Add({now, "opened", fact.session.serial, fact.session.slot, 0});
        } else if constexpr (std::is_same_v<Fact, core::SessionChanged>) {
          Add({now, "changed", fact.session.serial, 0, 0});
        } else if constexpr (std::is_same_v<Fact, core::SessionClosed>) {
          Add({now, "closed", fact.session.serial, 0, 0});
        } else if constexpr (std::is_same_v<Fact, core::JobSubmitted>) {
          Add({now, "submitted", fact.job->session.serial, fact.job->id, fact.job->queue});
        } else if constexpr (std::is_same_v<Fact, core::JobCancelled>) {
          Add({now, "cancelled", fact.session.serial, fact.job, 0});
        } else if constexpr (std::is_same_v<Fact, core::Paused>) {
          Add({now, "paused", fact.session.serial, 0, 0});
        } else if constexpr (std::is_same_v<Fact, core::Resumed>) {
          Add({now, "resumed", fact.session.serial, 0, 0});
        } else if constexpr (std::is_same_v<Fact, core::CommandFinished>) {
          Add({now, "finished", 0, static_cast<std::uint64_t>(fact.ticket),
               static_cast<std::uint64_t>(fact.outcome)});
        } else if constexpr (std::is_same_v<Fact, core::DeviceLost>) {
          Add({now, "device lost", 0, 0, 0});
        } else if constexpr (std::is_same_v<Fact, core::DeviceRestored>) {
          Add({now, "device restored", 0, 0, 0});
        } else if constexpr (std::is_same_v<Fact, core::PolicyChanged>) {
          Add({now, "policy", 0, fact.spec.generation, 0});
        } else {
          static_assert(std::is_same_v<Fact, core::SettingsChanged>);
          Add({now, "bound", 0, static_cast<std::uint64_t>(fact.preemption_bound.count()), 0});
        }
      },
      event);
}

void Recent::OnAction(Time now, const core::Action& action) {
  std::visit(
      [&](const auto& order) {
        using Order = std::decay_t<decltype(order)>;
        if constexpr (std::is_same_v<Order, core::StartCommand>) {
          Add({now, "  start", order.session.serial, static_cast<std::uint64_t>(order.ticket),
               order.job->id});
        } else if constexpr (std::is_same_v<Order, core::Interrupt>) {
          Add({now, "  interrupt", 0, static_cast<std::uint64_t>(order.ticket), 0});
        } else if constexpr (std::is_same_v<Order, core::FinishJob>) {
          Add({now, "  end", order.job->session.serial, order.job->id,
               static_cast<std::uint64_t>(order.outcome)});
        } else if constexpr (std::is_same_v<Order, core::RefuseJob>) {
          Add({now, "  refuse", order.job->session.serial, order.job->id, 0});
        } else if constexpr (std::is_same_v<Order, core::SessionGone>) {
          Add({now, "  gone", order.session.serial, 0, 0});
        } else if constexpr (std::is_same_v<Order, core::RecordSlice>) {
          Add({now, "  slice", order.slice.session.serial,
               static_cast<std::uint64_t>(order.slice.charged.count()), order.slice.commands});
        } else {
          static_assert(std::is_same_v<Order, core::PolicyEjected>);
          Add({now, "  ejected", 0, order.now.generation, 0});
        }
      },
      action);
}

std::vector<std::string> Recent::Lines() const {
  std::vector<std::string> lines;
  for (std::size_t i = next_ > kKept ? next_ - kKept : 0; i < next_; ++i) {
    const Record& record = ring_[i % kKept];
    std::string line = std::to_string(record.at.time_since_epoch().count()) + " ns  " + record.what;
    if (record.session != 0) line += "  session " + std::to_string(record.session);
    line += "  " + std::to_string(record.number) + "  " + std::to_string(record.more);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gpusched::sim
