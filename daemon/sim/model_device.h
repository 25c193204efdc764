// The device of a simulation: a line of commands and the times they run, with faults.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/action.h"
#include "core/event.h"
#include "device/virtual/cost_model.h"

namespace gpusched::sim {

// What becomes of one command.
struct Fate {
  Duration work{0};    // its kernel's own time, before the costs; may be made longer or shorter
  bool stuck = false;  // never ends, until the device is lost
  bool fails = false;  // ends with an error
};

// A line for each class of priority: start = max(submitted, end of the one before in its line), as
// on the virtual device. One class keeps order.
class ModelDevice {
 public:
  ModelDevice(const device::Costs& costs, std::uint64_t seed, bool can_interrupt);

  // `units_in_operation`: the extent that the command is a part of.
  void Start(Time now, const core::StartCommand&, std::uint64_t units_in_operation, const Fate&);
  void Interrupt(Time now, core::Ticket);

  // When the next command ends; kNever: none does.
  Time NextEnd() const { return next_end_; }
  // Takes the one that ends first (NextEnd() is a time).
  core::CommandFinished TakeEnded();
  // All of them, in start order, as lost.
  std::vector<core::CommandFinished> Lose(Time now);

  std::size_t in_flight() const { return in_flight_; }
  Duration busy() const { return busy_; }  // of commands that ended
  // By session serial: commands' own time, without gaps, chunk and switch costs.
  const std::vector<Duration>& kernel_times() const { return kernel_times_; }
  Duration CopyWork(std::uint64_t bytes) const { return model_.CopyWork(bytes); }

 private:
  struct Flight {
    core::Ticket ticket{};
    std::uint64_t first = 0, count = 0;
    std::uint64_t stopped_at = 0;
    Time submitted{}, started{}, ended{};
    Duration duration{0};
    Duration overhead{0};
    std::uint64_t session = 0;  // serial
    bool fails = false, stopped = false;
  };
  struct Line {
    std::deque<Flight> flights;
    Time free_at{};
    std::optional<SessionId> previous;
  };

  static void Plan(Line&, std::size_t from);
  void FindNext();

  device::CostModel model_;
  const device::Costs costs_;
  const bool can_interrupt_;
  std::vector<Line> lines_;
  std::size_t next_line_ = 0;
  Time next_end_ = kNever;
  std::uint64_t number_ = 0;
  std::size_t in_flight_ = 0;
  Duration busy_{0};
  std::vector<Duration> kernel_times_;
};

}  // namespace gpusched::sim
