// The orders that come out of the scheduler.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "core/event.h"
#include "core/job.h"
#include "core/ticket.h"
#include "gpusched/policy/policy.h"

namespace gpusched::core {

// Run units [first, first + count) of one operation. `job` stays valid until its FinishJob.
struct StartCommand {
  Ticket ticket{};
  SessionId session;
  Job* job = nullptr;
  std::uint32_t operation = 0;
  std::uint64_t first = 0, count = 0;
  Duration estimate{0};
  std::uint32_t priority_class = 0;  // priority_class.h
};
// A hint to end a command early.
struct Interrupt {
  Ticket ticket{};
};

enum class JobOutcome : std::uint8_t {
  kDone,
  kCancelled,  // by the client, or with its session; error says which
  kSkipped,    // skip_if_late, and it could not have been on time
  kFailed,     // the device reported an error
};
// Exactly one FinishJob or RefuseJob for every JobSubmitted; each returns one credit.
struct FinishJob {
  std::unique_ptr<Job> job;
  JobOutcome outcome = JobOutcome::kDone;
};
struct RefuseJob {
  std::unique_ptr<Job> job;
  Status why;
};
// Nothing of the session is left in the core; its slot may be used again.
struct SessionGone {
  SessionId session;
};
struct RecordSlice {
  SliceReport slice;
};
// The policy broke its contract; round robin has taken over under the next generation.
struct PolicyEjected {
  PolicySpec ejected;
  PolicySpec now;
  std::string why;
};

using Action = std::variant<StartCommand, Interrupt, FinishJob, RefuseJob, SessionGone, RecordSlice,
                            PolicyEjected>;

}  // namespace gpusched::core
