// The facts that go into the scheduler.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "core/job.h"
#include "core/ticket.h"
#include "gpusched/policy/policy.h"
#include "gpusched/policy/types.h"
#include "gpusched/status.h"

namespace gpusched::core {

// A policy as plain data, for records and for building it again; the object travels beside it.
struct PolicySpec {
  std::string kind;              // a name in the catalog, or a third party's
  std::string parameters;        // canonical "key=value,..." in the catalog's order
  std::uint64_t generation = 0;  // strictly increasing
  std::string source;  // who: "file /etc/...", "operator uid 0", "roll-back to 3", "ejected"
};

// The driver hands out ids (session_ids.h); a slot is free again after SessionGone.
struct SessionOpened {
  SessionId session;
  Share share;
};
struct SessionChanged {
  SessionId session;
  Share share;
};
// Waiting jobs finish as cancelled at once, running ones when drained; then SessionGone.
struct SessionClosed {
  SessionId session;
  Status why;
};
struct JobSubmitted {
  std::unique_ptr<Job> job;
};
// Too late or unknown: no error, the job's own report tells.
struct JobCancelled {
  SessionId session;
  std::uint64_t job = 0;
};
struct Paused {
  SessionId session;
};
struct Resumed {
  SessionId session;
};

struct CommandFinished {
  enum class Outcome : std::uint8_t { kDone, kStopped, kFailed, kLost };
  Ticket ticket{};
  Outcome outcome = Outcome::kDone;
  std::uint64_t next = 0;   // kStopped: first block or byte not done
  Time started{}, ended{};  // the driver's clock
  Status error;             // kFailed, kLost
};
struct DeviceLost {
  Status why;
};
struct DeviceRestored {};
struct PolicyChanged {
  PolicySpec spec;
  std::unique_ptr<Policy> policy;
};
// Device settings that may change while everything runs.
struct SettingsChanged {
  Duration preemption_bound{0};
};

using Event = std::variant<SessionOpened, SessionChanged, SessionClosed, JobSubmitted, JobCancelled,
                           Paused, Resumed, CommandFinished, DeviceLost, DeviceRestored,
                           PolicyChanged, SettingsChanged>;

}  // namespace gpusched::core
