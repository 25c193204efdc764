// Drives one device: facts in, the scheduler's orders carried out, answers to the streams.
//
// An executor is a baton, not a thread (mailbox.h): whoever brings an item runs it here if nobody
// does. A turn takes what the mailbox holds, handles all of it, lets the scheduler decide, carries
// out its orders and hands each session its messages as one frame. It never blocks and never nests:
// what a device reports from within Start is simply the next item.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/scheduler.h"
#include "core/session_ids.h"
#include "device/device.h"
#include "executor/desk.h"
#include "executor/mailbox.h"
#include "executor/session.h"
#include "executor/slice_feed.h"
#include "executor/snapshot.h"
#include "executor/wakeup_timer.h"

namespace gpusched::executor {

// How loaded a device is, for placing sessions: written by the holder, read by anyone.
struct Load {
  std::atomic<std::uint32_t> sessions{0};  // placed here, opening ones included
  std::atomic<std::uint32_t> with_work{0};
  std::atomic<std::uint64_t> memory_bytes{0};  // quotas
};

class Executor {
 public:
  struct Options {
    std::uint32_t index = 0;
    core::Limits limits;
    SessionLimits sessions;
    Duration preemption_bound = std::chrono::milliseconds(1);
    // The daemon's counter of sessions: ids are unique over all its devices.
    std::atomic<std::uint64_t>* session_serials = nullptr;
    // Called by the holder when the core put round robin in a faulty policy's place. Must not
    // block.
    std::function<void(std::uint32_t index, core::PolicyEjected)> on_ejected;
  };

  // The caller holds the mailbox's baton; it is laid down here.
  Executor(Options options, std::unique_ptr<Mailbox> mailbox,
           std::unique_ptr<device::Device> device, core::PolicySpec spec,
           std::unique_ptr<Policy> policy, boost::asio::io_context& events);
  // Nobody brings anything any more, and no session is left.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Any thread.
  void Bring(Item item) { mailbox_->Bring(std::move(item)); }
  const device::DeviceInfo& device_info() const { return device_->info(); }
  std::uint32_t index() const { return options_.index; }
  const Load& load() const { return load_; }
  // Counts a session that will say Hello here; the executor takes it back when it goes or is
  // refused.
  void Reserve(std::uint64_t memory_bytes);

  // Control threads: these wait until the holder has answered. Never from within a turn.
  Snapshot TakeSnapshot();
  std::vector<ModuleSnapshot> Modules();
  void SetLimits(const SessionLimits& limits);
  void SetPreemptionBound(Duration bound);
  // Nothing happens unless `spec` is newer than the policy in force.
  void ChangePolicy(core::PolicySpec spec, std::unique_ptr<Policy> policy);
  bool Pause(std::uint64_t session, bool paused);
  bool Kill(std::uint64_t session, const Status& why);
  void Watch(std::shared_ptr<SliceFeed> feed);
  void Unwatch(const std::shared_ptr<SliceFeed>& feed);
  // New sessions and jobs are refused with `why`; each session ends with its last job.
  void Drain(const Status& why);
  // Returns when all that was brought before is dealt with, last words included.
  void Settled() {
    Ask([] {});
  }
  // Every session ends now, as far as what runs allows.
  void CloseAll(const Status& why);

 private:
  void Ask(std::function<void()> question);

  void Run();
  void Round();
  void Handle(Item& item);
  void On(FrameArrived& arrived);
  void On(StreamClosed& closed);
  void On(ResultsSent& sent);
  void On(device::Completion& completion);
  void On(device::Prepared& prepared);
  void On(core::PolicyChanged& change);
  void Open(const std::shared_ptr<SessionPort>& port, Hello& hello);
  Status TryOpen(const std::shared_ptr<SessionPort>& port, Hello& hello);
  void CarryOut(core::Action& action);
  void On(core::FinishJob& finish);
  void On(core::SessionGone& gone);
  void On(core::RecordSlice& record);
  void On(core::PolicyEjected& ejected);
  void CountWork(Session& session);
  void FlushSessions();
  void ForgetSessions();
  void Settle();
  Session* Find(std::uint64_t serial) const;

  const Options options_;
  const std::unique_ptr<Mailbox> mailbox_;
  const std::unique_ptr<device::Device> device_;
  bool promises_shares_ =
      false;  // the policy in force does; before scheduler_, which takes the first
  core::Scheduler scheduler_;
  Desk desk_;
  core::SessionIds ids_;
  std::vector<std::unique_ptr<Session>> sessions_;     // by slot
  std::vector<Session*> forgotten_;                    // to be removed at the end of the round
  std::vector<std::shared_ptr<SessionPort>> read_on_;  // streams whose frame was handled
  std::vector<std::shared_ptr<SliceFeed>> feeds_;
  std::optional<Status> draining_;
  Duration preemption_bound_;
  std::uint64_t generation_ = 0;
  WakeupTimer timer_;
  Load load_;

  std::vector<Item> items_;
  std::vector<core::Action> actions_;
};

}  // namespace gpusched::executor
