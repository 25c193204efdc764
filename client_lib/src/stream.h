// One session of the library: its stream, and what is outstanding on it.
//
// Thread-safe. Every handle of a session holds its Stream; the Session itself ends it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "encoding.h"
#include "exchange.h"
#include "gpusched/session.h"
#include "gpusched/submission.h"
#include "records.h"

namespace gpusched::internal {

class Stream : public std::enable_shared_from_this<Stream>, private Exchange::Receiver {
 public:
  static Result<std::shared_ptr<Stream>> Open(std::unique_ptr<Call> call,
                                              const SessionOptions& options);

  Result<std::shared_ptr<const ModuleRecord>> LoadModule(const ModuleImages& images);
  void UnloadModule(std::uint64_t module);
  Result<std::uint64_t> Allocate(std::uint64_t bytes);
  Status Free(std::uint64_t buffer);
  Result<std::uint32_t> OpenQueue();
  Status CloseQueue(std::uint32_t queue);
  Status ChangeShare(const DeclaredShare& share);

  Result<std::shared_ptr<TemplateRecord>> RegisterTemplate(const Job& job);
  void ReleaseTemplate(TemplateRecord& record);

  Result<std::shared_ptr<JobRecord>> Submit(const Job& job, const SubmitOptions& options);
  Result<std::shared_ptr<JobRecord>> Submit(const std::shared_ptr<TemplateRecord>& made_from,
                                            const Changes* changes, const SubmitOptions& options);
  Result<JobReport> Wait(JobRecord& job, Deadline deadline);
  bool Done(JobRecord& job);
  Status Cancel(const JobRecord& job);
  // What the job has yet to read goes nowhere, unless a callback still wants it.
  void DropReads(JobRecord& job);

  Status Drain(Deadline deadline);
  // The daemon is asked to close and waited for, patiently or but a moment; then the call is cut.
  // Ends the callbacks' thread.
  void Close(bool patiently);

  // In a child of the process that opened the session, where nothing of it may be touched.
  bool forked() const;

  std::uint64_t id() const { return id_; }
  const std::string& name() const { return name_; }
  const DeviceInfo& device() const { return device_; }
  std::uint64_t memory() const { return memory_; }
  Window window() const { return window_; }
  DeclaredShare share();

  // For Encoding.
  std::uint64_t NextStaging() { return next_staging_.fetch_add(1, std::memory_order_relaxed); }
  // The one module that has the kernel.
  Result<std::uint64_t> FindKernel(std::string_view kernel);

 private:
  // A message that the daemon answers: it lives on the stack of the thread that waits.
  struct Question {
    Exchange::Awaited answered;
    Status status;
    std::vector<KernelInfo> kernels;
    std::string build_log;
  };
  // A thread that waits for room in the window.
  struct Claim {
    Credits wanted;
    Exchange::Awaited granted;
  };

  Stream(std::unique_ptr<Call> call, std::string name);
  ~Stream() override = default;

  void Receive(v1::ServerMessage& message) override;
  void Ended(const Status& why) override;
  void LeftUnsent() override;
  void ReceiveWelcome(const v1::Welcome& welcome);
  void ReceiveReport(const v1::JobReport& report);
  void ReceiveResult(const v1::Data& data);
  void ReceiveLoaded(const v1::ModuleLoaded& loaded);
  void ReceiveAnswer(const v1::Answer& answer);
  void Answer(Question& question, const v1::Error& error);

  static Status Forked();
  Status Greet(const SessionOptions& options);
  Status SendAlone(v1::ClientMessage& message);
  // Sends, and waits for the answer.
  Status Ask(Exchange::Lock& lock, v1::ClientMessage& message, Question& question);

  Status ClaimCredits(Exchange::Lock& lock, Credits wanted, WhenFull when_full);
  bool TakeCredits(Credits wanted);
  void ReturnCredits(Credits credits);
  Status Stage(Exchange::Lock& lock, const std::vector<Source>& sources);
  Result<std::shared_ptr<JobRecord>> SubmitEncoded(v1::ClientMessage& message,
                                                   Encoding::Encoded& encoded,
                                                   std::shared_ptr<TemplateRecord> made_from,
                                                   const SubmitOptions& options, Deadline called);
  void Finish(std::shared_ptr<JobRecord> job);
  void Release(TemplateRecord& record);

  void StartCallbacks();
  void RunCallbacks();
  void StopCallbacks();

  const pid_t pid_;
  const std::string name_;
  Exchange exchange_;

  // Facts of the welcome: they do not change after Open returned.
  std::uint64_t id_ = 0;
  DeviceInfo device_;
  std::uint64_t memory_ = 0;
  Window window_;

  std::atomic<std::uint64_t> next_staging_{1};

  // All below is guarded by the exchange's lock.
  Exchange::Awaited welcomed_;
  Exchange::Awaited over_;
  Status ended_;     // why; OK while it lives
  Status farewell_;  // what the daemon said last
  bool farewell_said_ = false;
  bool closing_ = false;       // by our own wish
  bool said_goodbye_ = false;  // by Drain
  DeclaredShare share_;
  Credits credits_;
  std::deque<Claim*> claims_;  // first come, first served
  std::uint64_t next_id_ = 1;  // of modules, buffers, templates and jobs alike
  std::uint64_t queues_ = 1;   // a bit for each that is open
  std::unordered_map<std::uint64_t, std::shared_ptr<JobRecord>> jobs_;
  std::map<std::uint64_t, TemplateRecord*> templates_;
  std::map<std::uint64_t, std::vector<std::string>> kernels_;  // by module
  std::map<std::uint64_t, Question*> loads_;
  std::map<std::uint64_t, Question*> allocations_;
  std::deque<Question*> share_changes_;

  // The callbacks' thread: there from the first Submit with on_done, or from when messages are left
  // that the daemon has not taken, until Close.
  std::thread callback_thread_;
  std::condition_variable callback_wanted_;
  Exchange::Awaited* callback_due_ = nullptr;
  std::deque<std::shared_ptr<JobRecord>> callbacks_;  // to be called
  std::uint64_t callbacks_outstanding_ = 0;           // jobs not over that have one
  bool callbacks_stopping_ = false;
};

}  // namespace gpusched::internal
