// A job on its way: how it is submitted, waited for, cancelled, and what its report says.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gpusched/export.h"
#include "gpusched/job.h"
#include "gpusched/status.h"

namespace gpusched {

namespace internal {
class Stream;
struct JobRecord;
struct TemplateRecord;
}  // namespace internal

enum class Outcome : std::uint8_t {
  kDone,
  kCancelled,  // by Cancel, or with its session or queue; nothing can be said of its results
  kSkipped,    // asked for skip_if_late and could not have been on time; it did not run
};

struct JobReport {
  Outcome outcome = Outcome::kDone;
  Status why;             // where it is not done: CANCELLED or SKIPPED_LATE, and who or what did it
  Duration in_client{0};  // from the call of Submit until it was written to the daemon
  Duration queued{0};     // in the daemon, until its first command started on the device
  Duration run{0};        // from there to the end of its last command
  // From there until the library read the report: by the caller of any Wait, so it grows while
  // nobody waits.
  Duration returned{0};
  Duration total{0};             // the four together: from the call of Submit
  Duration charged{0};           // device time the session paid for it
  bool late = false;             // ended past its deadline
  std::uint64_t generation = 0;  // of the policy value in force at its end
  // By the device, on the daemon's steady clock, for those who compare jobs; zero: never started.
  Duration started{0}, ended{0};
};

enum class WhenFull : std::uint8_t {
  kWait,  // Submit returns when the window has room again; the time counts as in_client
  kFail,  // RESOURCE_EXHAUSTED (WINDOW_EXCEEDED, STAGING_EXCEEDED) at once
};

struct SubmitOptions {
  std::uint32_t queue = 0;
  Duration deadline{0};  // from the call of Submit; zero: the session's latency target
  std::string tag = {};  // for people, UTF-8
  WhenFull when_full = WhenFull::kWait;
  bool skip_if_late = false;  // not worth running if it cannot be on time; counts as missed
  // Called once, on a thread of the library's that is the session's own, with what Wait would
  // answer. It may submit and wait, but what it does holds up the session's other callbacks. Where
  // it is set, what Read names must live until it was called, even if the submission is destroyed
  // before.
  std::function<void(const Result<JobReport>&)> on_done = {};
};

// Move-only. Destroying it neither waits nor cancels: the job runs on, and what it would have read
// into the caller's memory is dropped.
class GPUSCHED_EXPORT Submission {
 public:
  Submission(Submission&&) noexcept;
  Submission& operator=(Submission&&) noexcept;
  ~Submission();

  // The report where the job was done, cancelled or skipped; a Status where it was refused
  // (INVALID_ARGUMENT, NOT_FOUND ...) or failed (DEVICE_FAILED, DEVICE_LOST, DEPENDENCY_FAILED), or
  // where the session ended first (DAEMON_LOST, KILLED, SESSION_CLOSED). May be called again.
  Result<JobReport> Wait();
  // DEADLINE_EXCEEDED (WAIT_TIMED_OUT) after `limit`: the job goes on, wait again or cancel it.
  Result<JobReport> Wait(Duration limit);
  // Whether Wait would return at once. Reads what has arrived, never blocks.
  bool Done();
  // Waiting: it will not run. Running: it ends early. Over: nothing. Wait tells which.
  Status Cancel();

  std::uint64_t id() const;  // unique within its session

 private:
  friend class Session;
  Submission(std::shared_ptr<internal::Stream> stream, std::shared_ptr<internal::JobRecord> job);
  void Drop();

  std::shared_ptr<internal::Stream> stream_;
  std::shared_ptr<internal::JobRecord> job_;
};

// A registered job; forgotten by the daemon when the handle is destroyed and its submissions are
// over.
class GPUSCHED_EXPORT Template {
 public:
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

 private:
  friend class Session;
  Template(std::shared_ptr<internal::Stream> stream,
           std::shared_ptr<internal::TemplateRecord> record);
  void Drop();

  std::shared_ptr<internal::Stream> stream_;
  std::shared_ptr<internal::TemplateRecord> record_;
};

}  // namespace gpusched
