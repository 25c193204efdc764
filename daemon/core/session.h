// A session inside the core: its queues of jobs, its run state, its totals.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "core/cap.h"
#include "core/estimate.h"
#include "core/job.h"
#include "core/limits.h"
#include "gpusched/policy/types.h"
#include "gpusched/status.h"

namespace gpusched::core {

// One in-order line of jobs. Everything before `next` has started all it has and is draining.
struct Queue {
  Job* head = nullptr;
  Job* tail = nullptr;
  Job* next = nullptr;  // first with something left to start

  // From this job on; one behind may have started all it has when the device stopped one in front.
  static Job* FirstToStart(Job* job) {
    while (job != nullptr && job->next_operation == job->operations.size())
      job = job->next_in_queue;
    return job;
  }

  void Append(Job* job) {
    job->previous_in_queue = tail;
    job->next_in_queue = nullptr;
    (tail != nullptr ? tail->next_in_queue : head) = job;
    tail = job;
    if (next == nullptr) next = job;
  }
  void Remove(Job* job) {
    if (next == job) next = FirstToStart(job->next_in_queue);
    (job->previous_in_queue != nullptr ? job->previous_in_queue->next_in_queue : head) =
        job->next_in_queue;
    (job->next_in_queue != nullptr ? job->next_in_queue->previous_in_queue : tail) =
        job->previous_in_queue;
  }
};

struct Session {
  static constexpr std::uint32_t kQueues = 64;  // one machine word of them

  Session(SessionId session_id, const Share& declared, const Limits& limits, Duration overhead)
      : id(session_id), share(declared), estimates(limits.estimates_per_session, overhead) {}

  SessionId id;
  Share share;
  std::array<Queue, kQueues> queues{};
  std::uint64_t startable = 0;  // bit q: queues[q].next is there
  Estimates estimates;
  Cap cap;
  Duration lag_ahead{0};  // of the cap: what the account was charged less what the cap was
  Rate kept_free = 0;     // of a strict session without work: its min

  bool paused = false;
  bool closing = false;
  Status why_closed;
  bool runnable = false;        // as the policy was told
  bool spared = false;          // stopped before it did anything: its next command is not
  Time waiting_since = kNever;  // while it could run or only a cap holds it back
  Time patient_since{};         // the same on the clock that leaves out stalls
  Time held_at{};               // on that clock: when a cap began to hold it back
  Duration declared_wait{-1};   // by the policy, when last asked; negative: not yet

  std::uint32_t jobs = 0;  // not finished
  std::uint32_t jobs_started = 0;
  std::uint32_t in_flight = 0;  // commands
  std::uint32_t given_up = 0;   // jobs skipped for their estimate alone since one was tried

  // What the policy was last told of the job it would run next.
  Time told_deadline = kNever;

  Duration charged{0}, busy{0}, longest_wait{0}, longest_uncuttable{0};
  Time last_served{};
  std::uint64_t done = 0, failed = 0, cancelled = 0, skipped = 0, late = 0;
  std::uint64_t slices = 0, preempted = 0, rescues = 0, commands = 0;

  bool has_work() const { return jobs > 0 && !paused && !closing; }
};

}  // namespace gpusched::core
