// One session on one device: its ids, resources, queues of held jobs, and what becomes of each
// message.
//
// A job that names a module or buffer still being prepared, or whose results would pass what the
// client has not read yet, is held here, and behind it all later jobs of its queue; the core only
// ever sees jobs that can run. Everything a client could get wrong is refused here, typed, and
// changes nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <memory_resource>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/action.h"
#include "device/device.h"
#include "executor/desk.h"
#include "executor/messages.h"
#include "executor/port.h"
#include "executor/program.h"

namespace gpusched::executor {

// Belongs to the holder of the baton.
class Session {
 public:
  enum class Phase : std::uint8_t {
    kOpen,
    kFinishing,  // no new jobs; closes when the last has ended
    kClosing,    // the core was told
    kGone,       // nothing is left in the core; the device releases its memory
  };

  Session(Desk& desk, SessionId id, std::shared_ptr<SessionPort> port, const Hello& hello,
          Share granted);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Handle(ClientMessage& message, Time received);

  // From the core.
  void JobFinished(std::unique_ptr<core::Job> job, core::JobOutcome outcome);
  void JobRefused(std::unique_ptr<core::Job> job, const Status& why);
  void LeftCore();
  // From the device. True once its memory is free: the session may be forgotten.
  bool Prepared(const ResourcePtr& resource, device::Prepared prepared);
  void ResultsSent(std::uint64_t bytes);

  // No new jobs; ends with `why` after the last. OK: the client said goodbye.
  void Finish(const Status& why);
  // What waits is cancelled, what runs is drained; later calls change nothing.
  void Close(const Status& why);
  // Nobody is there to read any more.
  void Disconnect(const Status& why);
  void Pause(bool paused);

  void Send(ServerMessage message);
  // Hands the round's messages to the stream.
  void Flush();
  // The last word; no message goes out after it.
  void SendEnded();

  SessionId id() const { return id_; }
  Phase phase() const { return phase_; }
  const std::string& name() const { return name_; }
  const std::string& client() const { return client_; }
  const std::string& peer() const { return peer_; }
  const Share& share() const { return share_; }
  std::uint64_t quota() const { return quota_; }
  std::uint64_t memory_used() const { return memory_used_; }
  Time opened() const { return opened_; }
  const Status& ended_because() const { return why_; }
  bool has_work() const { return !jobs_.empty(); }
  std::size_t held_jobs() const;
  const std::map<std::uint64_t, ResourcePtr>& modules() const { return modules_; }
  // What became of its jobs.
  struct Tally {
    std::uint64_t done = 0, cancelled = 0, skipped = 0, failed = 0, refused = 0;
    Duration charged{0};
  };
  const Tally& tally() const { return tally_; }

  // The executor's: counted among the sessions with work.
  bool counted_working = false;

 private:
  struct Template {
    std::shared_ptr<Program> program;
    Status error;  // found once its modules were ready
  };
  struct IncomingStaging {
    StagingPtr staging;
    Status error;  // the bytes were not kept; later pieces are ignored
  };
  using TakenStagings = std::vector<std::pair<std::uint64_t, IncomingStaging>>;

  void On(Submit& submit, Time received);
  void On(Data& data);
  void On(LoadModule& load);
  void On(UnloadModule& unload);
  void On(Allocate& allocate);
  void On(Free& free);
  void On(RegisterTemplate& registration);
  void On(ForgetTemplate& forget);
  void On(OpenQueue& open);
  void On(CloseQueue& close);
  void On(Cancel& cancel);
  void On(ChangeShare& change);

  // Jobs (session_jobs.cc).
  Status Refusal(const Submit& submit) const;
  Result<std::shared_ptr<Program>> ProgramOf(Submit& submit) const;
  Status Unusable(const Program& program) const;
  TakenStagings TakeStagings(const Submit& submit);
  Status AttachSources(const Submit& submit, const Program& program, const TakenStagings& taken,
                       Body& body) const;
  void Accept(Submit& submit, Time received, std::shared_ptr<Program> program,
              std::unique_ptr<core::Job> job);
  void Refuse(const Submit& submit, Status why);
  bool TryStart(std::unique_ptr<core::Job>& job);
  void StartHeld();
  void Over(std::unique_ptr<core::Job> job, Outcome outcome, const Status& error);
  void Record(std::uint64_t job, const std::string& tag, Outcome outcome, const Status& error);
  void CloseIfFinished();

  Status DataFault(const Data& data, const IncomingStaging& staging) const;
  Status NewResourceFault(const std::map<std::uint64_t, ResourcePtr>& table, std::uint64_t id,
                          std::size_t most) const;
  ResourcePtr NewResource(Resource::Kind kind, std::uint64_t id);
  void Drop(std::map<std::uint64_t, ResourcePtr>& table, std::uint64_t id);
  void ReleaseIfUnused(const ResourcePtr& resource);
  void ReleaseFromDevice();
  void Settle(Resource& resource, device::Prepared& prepared);
  void SettleTemplates();
  void SendAnswer(Answer::Subject subject, std::uint64_t id, Status error);
  bool open() const { return phase_ == Phase::kOpen; }

  Desk& desk_;
  const SessionId id_;
  std::shared_ptr<SessionPort> port_;  // null once disconnected or ended
  const std::string name_, client_, peer_;
  Share share_;
  const std::uint64_t quota_;
  const std::uint32_t window_jobs_;
  const std::uint64_t window_bytes_;
  const Time opened_;
  Phase phase_ = Phase::kOpen;
  Status why_;

  std::map<std::uint64_t, ResourcePtr> modules_, buffers_;
  std::map<std::uint64_t, Template> templates_;
  std::vector<std::uint64_t> unsettled_;  // templates not yet checked
  std::map<std::uint64_t, IncomingStaging> stagings_;
  std::uint64_t last_device_id_ = 0;
  ResourceFinder finder_;
  Binder binder_;

  std::pmr::unordered_map<std::uint64_t, core::Job*> jobs_;  // outstanding, by the client's id
  std::uint64_t open_queues_ = 1;                            // a bit each; queue 0 always exists
  std::map<std::uint32_t, std::deque<std::unique_ptr<core::Job>>> held_;  // by queue

  std::uint64_t staged_bytes_ = 0;
  std::uint64_t program_bytes_ = 0;
  std::uint64_t result_bytes_ = 0;  // of jobs in the core and of results not yet sent
  std::uint64_t memory_used_ = 0;
  std::uint32_t preparing_ = 0;
  Tally tally_;

  std::vector<ServerMessage> messages_;
  bool listed_unsent_ = false;
};

}  // namespace gpusched::executor
