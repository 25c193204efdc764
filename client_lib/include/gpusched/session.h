// A session: a client's place on one device, with its share, memory, modules and queues.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpusched/export.h"
#include "gpusched/job.h"
#include "gpusched/memory.h"
#include "gpusched/module.h"
#include "gpusched/status.h"
#include "gpusched/submission.h"

namespace gpusched {

inline namespace literals {
constexpr std::uint64_t operator""_KiB(unsigned long long n) { return n << 10; }
constexpr std::uint64_t operator""_MiB(unsigned long long n) { return n << 20; }
constexpr std::uint64_t operator""_GiB(unsigned long long n) { return n << 30; }
}  // namespace literals

// What a service declares once; which of it counts is up to the policy in force, except `max` and
// `strict`, which every policy keeps.
struct DeclaredShare {
  int weight = 100;            // 1..10000, beside the other sessions' weights
  double min = 0;              // fraction of the device kept whenever the session has work, 0..1
  double max = 1;              // fraction never passed, min..1
  bool strict = false;         // needs min: it stays free even while the session has no work
  int priority = 0;            // -128..127, higher first
  Duration latency_target{0};  // from the call of Submit to the last result; zero: none
};

struct SessionOptions {
  std::string name = {};        // a label for people, UTF-8, need not be unique
  std::string device = "auto";  // uuid, index, or "auto": the least loaded with room
  DeclaredShare share = {};
  std::uint64_t memory = 0;  // bytes it may allocate; 0: the daemon's default
};

struct DeviceInfo {
  std::string uuid;
  std::string name;
  std::string backend;  // "virtual", "opencl", "cuda"
  int index = 0;        // as the daemon lists it
  std::uint64_t memory_bytes = 0;
  std::uint32_t compute_units = 0;
  bool order_kept = true;  // commands execute one after the other
  bool can_cut = false;    // launches can be preempted between blocks
  Duration preemption_bound{0};
};

// How much may be outstanding: Submit waits, or fails, beyond it.
struct Window {
  std::uint32_t jobs = 0;
  std::uint64_t bytes = 0;  // of Write operations
};

// Move-only. Destroying it closes the session: what waits is cancelled, memory is freed; buffers,
// modules, templates and submissions that outlive it answer CANCELLED (SESSION_CLOSED).
class GPUSCHED_EXPORT Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Waits until the device has built it. BUILD_FAILED with the compiler's words, NO_USABLE_IMAGE
  // where none of the images suits the device.
  Result<Module> LoadModule(const ModuleImages& images);
  // Waits for the daemon's answer. QUOTA_EXCEEDED or DEVICE_MEMORY where there is no room.
  Result<Buffer> Allocate(std::uint64_t bytes);
  // A further line of jobs beside queue 0: jobs of one queue run in order, queues are independent.
  // TOO_MANY beyond 64 in all.
  Result<std::uint32_t> OpenQueue();
  // Jobs that wait in it are cancelled.
  Status CloseQueue(std::uint32_t queue);
  // A job to be submitted many times by one small message. What its Write operations name is copied
  // now and kept in this process as long as the Template: each Submit sends these bytes anew,
  // except where Changes::Write names others. What is wrong with it is known from the first Submit
  // on at the latest; STAGING_EXCEEDED at once where its Writes do not fit window().bytes.
  Result<Template> RegisterTemplate(const Job& job);

  // Returns when the job is on its way and all its Write operations have taken their bytes.
  // Fails at once for what can be known at once; what the daemon finds (a wrong argument, a range
  // outside a buffer) comes with Wait.
  Result<Submission> Submit(const Job& job, const SubmitOptions& options = {});
  Result<Submission> Submit(const Template& job, const SubmitOptions& options = {});
  Result<Submission> Submit(const Template& job, const Changes& changes,
                            const SubmitOptions& options = {});

  // Waits for the daemon's consent; refused changes leave the share as it was.
  Status ChangeShare(const DeclaredShare& share);

  std::uint64_t id() const;  // as gpuschedctl shows it
  const std::string& name() const;
  const DeviceInfo& device() const;
  DeclaredShare share() const;   // as granted
  std::uint64_t memory() const;  // quota in bytes
  Window window() const;

  // Finishes what was submitted, then closes. Others may go on waiting for their jobs meanwhile.
  Status Drain(Duration limit = Duration::max());
  // Cancels what waits and returns when the daemon has closed the session, or after a few seconds
  // without an answer. OK too where the session had ended before.
  Status Close();

 private:
  friend class Client;
  explicit Session(std::shared_ptr<internal::Stream> stream);
  Result<Submission> SubmitTemplate(const Template& job, const Changes* changes,
                                    const SubmitOptions& options);
  void Drop();

  std::shared_ptr<internal::Stream> stream_;
};

}  // namespace gpusched
