// Lines of commands: each knows its times as soon as those before it do.
#include "sim/model_device.h"

#include <algorithm>

#include "gpusched/reasons.h"

namespace gpusched::sim {

ModelDevice::ModelDevice(const device::Costs& costs, std::uint64_t seed, bool can_interrupt)
    : model_(costs, seed), costs_(costs), can_interrupt_(can_interrupt), lines_(1) {}

// From flight `from` on; the times of those before it stand.
void ModelDevice::Plan(Line& line, std::size_t from) {
  for (std::size_t i = from; i < line.flights.size(); ++i) {
    Flight& flight = line.flights[i];
    flight.started = std::max(flight.submitted, i == 0 ? line.free_at : line.flights[i - 1].ended);
    flight.ended = After(flight.started, flight.duration);
  }
}

void ModelDevice::Start(Time now, const core::StartCommand& order, std::uint64_t units_in_operation,
                        const Fate& fate) {
  const std::size_t index = order.priority_class;
  if (index >= lines_.size()) lines_.resize(index + 1);
  Line& line = lines_[index];
  Flight flight;
  flight.ticket = order.ticket;
  flight.first = order.first;
  flight.count = order.count;
  flight.submitted = now;
  flight.fails = fate.fails;
  flight.duration = fate.stuck
                        ? kForever
                        : model_.DurationOf({.session = order.session,
                                             .work = std::min(fate.work, device::kLongestWork),
                                             .cut = order.count < units_in_operation},
                                            line.previous, number_);
  flight.session = order.session.serial;
  flight.overhead = costs_.launch_gap;
  if (order.count < units_in_operation) flight.overhead += costs_.chunk;
  if (line.previous && *line.previous != order.session) flight.overhead += costs_.session_switch;
  ++number_;
  line.previous = order.session;
  line.flights.push_back(flight);
  Plan(line, line.flights.size() - 1);
  ++in_flight_;
  if (line.flights.size() == 1) FindNext();
}

void ModelDevice::Interrupt(Time now, core::Ticket ticket) {
  if (!can_interrupt_) return;
  for (Line& line : lines_) {
    for (std::size_t i = 0; i < line.flights.size(); ++i) {
      Flight& flight = line.flights[i];
      if (flight.ticket != ticket) continue;
      if (flight.stopped || flight.ended <= now) return;
      const Duration ran = std::max(Duration(0), now - flight.started);
      __extension__ using Wide = __int128;
      const Wide done = flight.duration > Duration(0)
                            ? Wide{flight.count} * ran.count() / flight.duration.count()
                            : 0;
      flight.stopped = true;
      flight.stopped_at = flight.first + static_cast<std::uint64_t>(done);
      flight.duration = ran;
      Plan(line, i);
      FindNext();
      return;
    }
  }
}

void ModelDevice::FindNext() {
  next_end_ = kNever;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i].flights.empty() || lines_[i].flights.front().ended >= next_end_) continue;
    next_end_ = lines_[i].flights.front().ended;
    next_line_ = i;
  }
}

core::CommandFinished ModelDevice::TakeEnded() {
  using Outcome = core::CommandFinished::Outcome;
  Line& line = lines_[next_line_];
  const Flight flight = line.flights.front();
  line.flights.pop_front();
  line.free_at = flight.ended;
  --in_flight_;
  const Duration took = flight.ended - flight.started;
  busy_ += took;
  if (flight.session >= kernel_times_.size()) kernel_times_.resize(flight.session + 1);
  kernel_times_[flight.session] += std::max(Duration(0), took - flight.overhead);
  FindNext();
  core::CommandFinished fact;
  fact.ticket = flight.ticket;
  fact.started = flight.started;
  fact.ended = flight.ended;
  if (flight.fails) {
    fact.outcome = Outcome::kFailed;
    fact.error = Status(StatusCode::kInternal, reason::kDeviceFailed,
                        "the simulated command failed, as its scenario says");
  } else if (flight.stopped) {
    fact.outcome = Outcome::kStopped;
    fact.next = flight.stopped_at;
  }
  return fact;
}

std::vector<core::CommandFinished> ModelDevice::Lose(Time now) {
  std::vector<core::CommandFinished> lost;
  for (Line& line : lines_) {
    for (const Flight& flight : line.flights) {
      core::CommandFinished fact;
      fact.ticket = flight.ticket;
      fact.outcome = core::CommandFinished::Outcome::kLost;
      fact.started = std::min(flight.started, now);
      fact.ended = std::min(flight.ended, now);
      fact.error = Status(StatusCode::kUnavailable, reason::kDeviceLost,
                          "the simulated device was lost; submit the job again");
      lost.push_back(std::move(fact));
    }
    line = Line{};
    line.free_at = now;
  }
  // Tickets are handed out in the order of starting.
  std::sort(lost.begin(), lost.end(),
            [](const auto& a, const auto& b) { return a.ticket < b.ticket; });
  in_flight_ = 0;
  next_end_ = kNever;
  return lost;
}

}  // namespace gpusched::sim
