// A scheduler under the load that a decision's cost is measured by, without a clock or a device.
//
// Every session has one job of one launch outstanding. When it has ended the next one arrives at
// once, so with each completion one session becomes runnable and the one that is chosen becomes
// idle: the set of runnable sessions flips each time. Jobs are used again, so that whatever
// allocates is the scheduler.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/scheduler.h"

namespace gpusched::bench {

class DecisionWorkload {
 public:
  // All sessions differ in weight and latency target.
  DecisionWorkload(const std::string& policy, std::uint32_t sessions);

  // The oldest command in flight ends: its completion and the next job of its session go in, the
  // orders that follow come out.
  void Complete();

  // For the reader of the figures: a workload that stalled or ejected its policy measures nothing.
  bool sound() const;
  std::uint64_t jobs_done() const { return jobs_done_; }

 private:
  struct Started {
    core::Ticket ticket{};
    Time submitted{};
    Duration length{0};
  };

  void Submit(std::unique_ptr<core::Job> job);
  void Advance();

  const std::uint32_t sessions_;
  std::unique_ptr<core::Scheduler> scheduler_;
  std::vector<core::Action> actions_;
  std::vector<std::unique_ptr<core::Job>> ended_;
  // A ring, so that nothing is allocated: more than the core may have in flight.
  static constexpr std::size_t kRing = 128;
  std::vector<Started> in_flight_{kRing};
  std::size_t first_ = 0, in_flight_count_ = 0;
  Time now_{std::chrono::seconds(1)};
  Time device_free_{};
  std::uint64_t jobs_done_ = 0, last_job_ = 0, ejections_ = 0;
};

}  // namespace gpusched::bench
