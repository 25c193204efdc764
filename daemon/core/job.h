// A job as the core knows it: an ordered list of operations with extents, and nothing of their
// content.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpusched/policy/types.h"
#include "gpusched/status.h"

namespace gpusched::core {

struct Operation {
  enum class Kind : std::uint8_t { kLaunch, kCopyIn, kCopyOut, kFill };
  Kind kind = Kind::kLaunch;
  bool cuttable = false;     // may run as several commands over contiguous ranges of its extent
  std::uint64_t extent = 0;  // blocks of a launch, bytes of a copy or fill; at least 1
  // Blocks that run side by side, a wave: a part of a wave takes as long as all of it, so commands
  // are cut at multiples of it and expected to take time by whole waves. 1: each block counts.
  std::uint64_t wave = 1;
  // Commands of operations with equal keys are expected to take equal time per block or byte.
  std::uint64_t estimate_key = 0;
  std::uint32_t estimate = 0;  // the core's: index into the session's estimates

  // What `units` of it cost, in units: whole waves.
  std::uint64_t Whole(std::uint64_t units) const {
    if (wave == 1) return units;  // a division costs more than all else here
    return (units + wave - 1) / wave * wave;
  }
};

// Whatever the driver (executor or simulator) keeps beside a job; it comes back with FinishJob.
class JobBody {
 public:
  virtual ~JobBody() = default;
};

// Made by the driver, owned by the core from JobSubmitted to FinishJob or RefuseJob.
struct Job {
  SessionId session;
  std::uint64_t id = 0;  // the client's
  std::uint32_t queue = 0;
  Time arrived{};   // when Submit was called
  Time received{};  // when the daemon had it
  Time deadline = kNever;
  bool skip_if_late = false;
  std::vector<Operation> operations;
  std::unique_ptr<JobBody> body;

  // The core's own, from here on.
  enum class State : std::uint8_t { kWaiting, kRunning, kFinished };
  State state = State::kWaiting;
  bool cancelled = false;
  std::uint32_t next_operation = 0;  // first operation not wholly started
  std::uint64_t next_unit = 0;       // its first block or byte not started
  std::uint32_t in_flight = 0;
  Time first_start{}, last_end{};  // of its commands, by the device
  Duration charged{0};
  Duration work_left{0};  // estimate of what is not started
  Status error;
  std::uint64_t generation = 0;  // policy value in force at its end
  bool queued_up = false;        // its estimate is made: it is or was the first of its queue
  bool tried = false;            // not skipped although late by its estimate: to see whether it is
  Job* next_in_queue = nullptr;
  Job* previous_in_queue = nullptr;
};

}  // namespace gpusched::core
