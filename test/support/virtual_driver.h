// Drives the real scheduler in virtual time on a device that only counts: for stories without a
// clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "core/scheduler.h"
#include "core/session_ids.h"
#include "device/virtual/cost_model.h"
#include "device/virtual/timeline.h"

namespace gpusched::testing {

// Work of one shape: a job of `launches` launches, each of `blocks` blocks.
struct Work {
  Duration per_block{10'000};
  std::uint64_t blocks = 100;
  std::uint32_t launches = 1;
  bool cuttable = true;
  std::uint64_t wave = 1;  // blocks side by side: a part of a wave takes as long as all of it
  int times = 1;           // so many times longer than the kernel is known to be
  Duration total() const { return per_block * static_cast<std::int64_t>(blocks) * launches; }
};

struct JobRecord {
  SessionId session;
  std::uint64_t id = 0;
  core::JobOutcome outcome = core::JobOutcome::kDone;
  Time arrived{}, started{}, ended{}, deadline = kNever;
  Duration latency() const { return ended - arrived; }
};

// Facts go in at exact times; completions arrive `lateness` after the command's end, as where a
// thread has to wake up for them.
class VirtualDriver {
 public:
  struct Options {
    std::string policy = "round_robin";
    std::string parameters;
    device::Costs costs;
    core::Limits limits;
    core::DeviceTraits traits;
    Duration lateness{0};
  };
  explicit VirtualDriver(Options options);
  VirtualDriver(Options options, std::unique_ptr<Policy> policy);
  ~VirtualDriver();

  SessionId Open(const Share& share = {});
  void Close(SessionId);
  void Change(SessionId, const Share&);
  void Pause(SessionId);
  void Resume(SessionId);
  std::uint64_t Submit(SessionId, const Work&, std::uint32_t queue = 0,
                       Duration deadline_in = kForever, bool skip_if_late = false);
  void Cancel(SessionId, std::uint64_t job);
  void SetPolicy(const std::string& kind, const std::string& parameters = "");
  void SetPolicy(std::unique_ptr<Policy> policy);
  void LoseDevice();  // everything in flight is lost
  void RestoreDevice();

  // Keeps `outstanding` jobs of this shape submitted, from now until StopWork or Close.
  void KeepBusy(SessionId, const Work&, int outstanding = 2);
  void StopWork(SessionId);
  // Calls `what` at now + delay.
  void After(Duration delay, std::function<void()> what);
  // Submits every `period`, first after `phase`, with the deadline, until StopWork or Close.
  void Periodic(SessionId, const Work&, Duration period, Duration phase,
                Duration deadline_in = kForever);

  void RunFor(Duration);
  void RunUntilIdle();

  Time now() const { return now_; }
  core::Scheduler& scheduler() { return *scheduler_; }
  Duration Got(SessionId) const;                        // charged since it opened
  double ShareOf(SessionId, Time from, Time to) const;  // of slices, by the device's times
  Duration LargestIdleGap() const { return largest_idle_gap_; }
  const std::vector<JobRecord>& jobs() const { return jobs_; }
  std::vector<JobRecord> JobsOf(SessionId) const;
  const std::vector<SliceReport>& slices() const { return slices_; }
  const std::vector<core::PolicyEjected>& ejections() const { return ejections_; }
  std::size_t gone() const { return gone_; }
  std::size_t refused() const { return refused_; }
  std::size_t outstanding_jobs() const { return outstanding_; }
  // Every command as it executed.
  struct Executed {
    SessionId session;
    std::uint64_t job = 0;
    std::uint32_t operation = 0;
    std::uint64_t first = 0, count = 0;
    Time submitted{}, started{}, ended{};
  };
  const std::vector<Executed>& executed() const { return executed_; }

 private:
  struct Body;
  struct Happening {
    Time at{};
    std::uint64_t order = 0;
    std::function<void()> what;
    friend bool operator<(const Happening& a, const Happening& b) {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };
  struct Source {
    Work work;
    int outstanding = 0;
  };

  void Feed(core::Event);
  void Turn();
  void Execute(const core::StartCommand&);
  void Finish(core::FinishJob&);

  const Options options_;
  Time now_{std::chrono::seconds(1)};
  std::unique_ptr<core::Scheduler> scheduler_;
  core::SessionIds ids_;
  std::vector<device::Timeline> timelines_;  // by class of priority
  std::priority_queue<Happening> happenings_;
  std::uint64_t order_ = 0, next_job_ = 1, generation_ = 1, device_epoch_ = 0;
  std::map<SessionId, Source> sources_;
  std::map<std::uint64_t, Executed> in_flight_;  // by ticket
  std::vector<JobRecord> jobs_;
  std::vector<SliceReport> slices_;
  std::vector<core::PolicyEjected> ejections_;
  std::vector<Executed> executed_;
  std::size_t gone_ = 0, refused_ = 0, outstanding_ = 0;
  Time last_end_{};
  Duration largest_idle_gap_{0};
};

}  // namespace gpusched::testing
