// Every bound of the core, each with its reason.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpusched/policy/types.h"

namespace gpusched::core {

struct Limits {
  // Thousands of sessions are a fleet's largest host; the tables are sized by it.
  std::uint32_t sessions = 16'384;
  // 1..64 so that the set of queues with work is one machine word.
  std::uint32_t queues_per_session = 64;
  // The credit window: a client that outruns it is refused, so memory is bounded.
  std::uint32_t jobs_per_session = 1'024;
  // A job is the unit of an SLA, not a batch system; a training step of BERT has 4,777 kernels.
  std::uint32_t operations_per_job = 8'192;
  // Tiny launches run at the driver's own rate with fewer; more would only delay a preemption.
  std::uint32_t commands_in_flight = 64;
  // Kernels x shapes a session may have; beyond it they share one estimate.
  std::uint32_t estimates_per_session = 8'192;
  // No policy may hand out the device for longer at a time.
  Duration longest_slice = std::chrono::seconds(1);
  // Time a capped session may save up while it waits its turn: a slice of somebody else's, what was
  // in flight before it, and what its group resumes with. Three tenths of a point of a second.
  Duration cap_burst = std::chrono::milliseconds(3);
  // And at least, that of a session which is owed nothing: more than none, or it would never run.
  Duration least_cap_burst = std::chrono::microseconds(1);
  // The most that commands in one piece, which nothing can shorten the wait for, add to it.
  Duration longest_cap_wait = std::chrono::milliseconds(200);
  // What the sessions beside a strict one must have saved before they run again, so that they are
  // not told to stop and go more than a thousand times a second.
  Duration group_resume = std::chrono::milliseconds(1);
  // What all sessions together may save up beside a strict one without work, where shares are
  // promised: hardly more than they resume with, since all of it is beyond what they ask for.
  Duration idle_burst = std::chrono::microseconds(1'100);
  // A wait is a policy's fault only beyond what it declared plus this (and twice the longest
  // command).
  Duration starvation_slack = std::chrono::milliseconds(100);
  // A debt or claim beyond this is of no use to anyone and would take minutes to clear.
  Duration largest_lag = std::chrono::seconds(10);
  // What a session may still be owed when it runs out of work: one window of weighted_share. One
  // job at a time, it may never be able to use its share; a claim that only grew would shut others
  // out later.
  Duration carried_claim = std::chrono::milliseconds(100);
  // A session that closes and leaves the others a lag beyond this moves them all: the policy is
  // told of each. Less is what slices make all the time.
  Duration told_legacy = std::chrono::milliseconds(2);
  // The preemption bound's range.
  Duration least_preemption_bound = std::chrono::microseconds(100);
  Duration greatest_preemption_bound = std::chrono::seconds(1);
};

}  // namespace gpusched::core
