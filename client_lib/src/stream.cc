// A session's life, and what it asks of the daemon beside jobs.
#include "stream.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "gpusched/reasons.h"

namespace gpusched::internal {
namespace {

constexpr std::uint32_t kProtocolVersion = 1;
// A daemon answers a greeting within one executor turn; one that is stopped in a debugger does not.
constexpr std::chrono::seconds kWelcomeLimit{30};
// Closing waits for what runs on the device; what takes longer is left to the daemon.
constexpr std::chrono::seconds kCloseLimit{5};
// A destructor says goodbye, but does not wait for what runs.
constexpr std::chrono::milliseconds kLeaveLimit{50};
// A cancelled call ends at once, unless the daemon takes nothing at all.
constexpr std::chrono::seconds kCancelLimit{1};
// So that the set of queues is one word; the daemon has the same bound.
constexpr std::uint32_t kQueues = 64;

}  // namespace

Stream::Stream(std::unique_ptr<Call> call, std::string name)
    : pid_(getpid()), name_(std::move(name)), exchange_(std::move(call), *this) {}

bool Stream::forked() const { return getpid() != pid_; }

Status Stream::Forked() {
  return Status(StatusCode::kFailedPrecondition, reason::kForked,
                "the session belongs to the process that opened it, not to its fork: connect again "
                "in the child");
}

Result<std::shared_ptr<Stream>> Stream::Open(std::unique_ptr<Call> call,
                                             const SessionOptions& options) {
  if (Status status = CheckText("SessionOptions::name", options.name); !status.ok()) return status;
  if (Status status = CheckText("SessionOptions::device", options.device); !status.ok()) {
    return status;
  }
  if (Status status = CheckShare(options.share); !status.ok()) return status;
  // A forked child leaves it as it is: its locks and sleepers are those of threads that only the
  // parent has.
  const std::shared_ptr<Stream> stream(new Stream(std::move(call), options.name), [](Stream* last) {
    if (!last->forked()) delete last;
  });
  if (Status status = stream->Greet(options); !status.ok()) return status;
  return stream;
}

Status Stream::Greet(const SessionOptions& options) {
  v1::ClientMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_version(kProtocolVersion);
  hello->set_name(options.name);
  hello->set_device(options.device);
  EncodeShare(options.share, hello->mutable_share());
  hello->set_memory_bytes(options.memory);
  hello->set_client("libgpusched " GPUSCHED_VERSION);
  Exchange::Lock lock = exchange_.Enter();
  if (Status status = exchange_.Send(message); !status.ok()) return status;
  if (!exchange_.Await(lock, welcomed_, Clock::now() + kWelcomeLimit)) {
    return Status(StatusCode::kUnavailable, reason::kDaemonUnreachable,
                  "something accepts connections there but does not answer a greeting: is it "
                  "gpuschedd, and is it running?");
  }
  return ended_;
}

void Stream::Receive(v1::ServerMessage& message) {
  switch (message.what_case()) {
    case v1::ServerMessage::kWelcome: ReceiveWelcome(message.welcome()); break;
    case v1::ServerMessage::kJob: ReceiveReport(message.job()); break;
    case v1::ServerMessage::kResult: ReceiveResult(message.result()); break;
    case v1::ServerMessage::kModuleLoaded: ReceiveLoaded(message.module_loaded()); break;
    case v1::ServerMessage::kAnswer: ReceiveAnswer(message.answer()); break;
    case v1::ServerMessage::kEnded:
      farewell_said_ = true;
      farewell_ = DecodeError(message.ended().error());
      break;
    // A later daemon's message, which this library has not asked for.
    case v1::ServerMessage::WHAT_NOT_SET: break;
  }
}

void Stream::ReceiveWelcome(const v1::Welcome& welcome) {
  id_ = welcome.session();
  device_ = DecodeDevice(welcome.device());
  memory_ = welcome.memory_bytes();
  window_ = {.jobs = welcome.window_jobs(), .bytes = welcome.window_bytes()};
  share_ = DecodeShare(welcome.share());
  credits_ = {.jobs = window_.jobs, .bytes = window_.bytes};
  exchange_.Complete(welcomed_);
}

void Stream::Ended(const Status& why) {
  if (!farewell_.ok()) {
    ended_ = farewell_;
  } else if (closing_ || farewell_said_) {
    ended_ = Status(StatusCode::kCancelled, reason::kSessionClosed, "the session was closed");
  } else if (why.ok() || why.code() == StatusCode::kCancelled) {
    ended_ =
        Status(StatusCode::kUnavailable, reason::kDaemonLost,
               "the daemon ended the session without a word: connect again and open a new one");
  } else {
    ended_ = why;
  }
  exchange_.Complete(welcomed_);
  exchange_.Complete(over_);
  const auto fail = [this](Question* question) {
    question->status = ended_;
    exchange_.Complete(question->answered);
  };
  for (const auto& [id, question] : loads_) fail(question);
  for (const auto& [id, question] : allocations_) fail(question);
  for (Question* question : share_changes_) fail(question);
  loads_.clear();
  allocations_.clear();
  share_changes_.clear();
  for (Claim* claim : claims_) exchange_.Complete(claim->granted);
  claims_.clear();
  // In the order of submission, for those who are called back.
  std::vector<std::shared_ptr<JobRecord>> jobs;
  for (const auto& [id, job] : jobs_) jobs.push_back(job);
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) { return a->id < b->id; });
  for (std::shared_ptr<JobRecord>& job : jobs) {
    job->failure = ended_;
    Finish(std::move(job));
  }
  if (callback_due_ != nullptr) exchange_.Complete(*callback_due_);
  callback_wanted_.notify_all();
}

Status Stream::SendAlone(v1::ClientMessage& message) {
  if (forked()) return Forked();
  Exchange::Lock lock = exchange_.Enter();
  if (!ended_.ok()) return ended_;
  if (Status status = exchange_.Send(message); !status.ok()) return status;
  exchange_.Flush(lock);
  return Status::Ok();
}

Status Stream::Ask(Exchange::Lock& lock, v1::ClientMessage& message, Question& question) {
  if (Status status = exchange_.Send(message); !status.ok()) return status;
  exchange_.Await(lock, question.answered, kNoDeadline);
  return question.status;
}

void Stream::Answer(Question& question, const v1::Error& error) {
  question.status = DecodeError(error);
  exchange_.Complete(question.answered);
}

void Stream::ReceiveAnswer(const v1::Answer& answer) {
  // What nobody waits for is an operation that failed after its handle was gone, or whose failure
  // the jobs that depend on it will tell.
  switch (answer.subject()) {
    case v1::Answer::BUFFER:
      if (const auto found = allocations_.find(answer.id()); found != allocations_.end()) {
        Answer(*found->second, answer.error());
        allocations_.erase(found);
      }
      break;
    case v1::Answer::TEMPLATE:
      if (const auto found = templates_.find(answer.id()); found != templates_.end()) {
        found->second->failure = DecodeError(answer.error());
      }
      break;
    case v1::Answer::SHARE:
      if (!share_changes_.empty()) {
        Answer(*share_changes_.front(), answer.error());
        share_changes_.pop_front();
      }
      break;
    default: break;  // an open enumeration: a later daemon may know more
  }
}

Result<std::shared_ptr<const ModuleRecord>> Stream::LoadModule(const ModuleImages& images) {
  v1::ClientMessage message;
  if (Status status = EncodeImages(images, message.mutable_load_module()); !status.ok()) {
    return status;
  }
  if (forked()) return Forked();
  const auto record = std::make_shared<ModuleRecord>();
  Exchange::Lock lock = exchange_.Enter();
  if (!ended_.ok()) return ended_;
  const std::uint64_t id = next_id_++;
  message.mutable_load_module()->set_module(id);
  Question question;
  loads_[id] = &question;
  const Status status = Ask(lock, message, question);
  loads_.erase(id);
  if (!status.ok()) return status;
  record->id = id;
  record->kernels = std::move(question.kernels);
  record->build_log = std::move(question.build_log);
  std::vector<std::string>& names = kernels_[id];
  for (const KernelInfo& kernel : record->kernels) names.push_back(kernel.name);
  record->stream = shared_from_this();
  return std::shared_ptr<const ModuleRecord>(record);
}

void Stream::ReceiveLoaded(const v1::ModuleLoaded& loaded) {
  const auto found = loads_.find(loaded.module());
  if (found == loads_.end()) return;
  Question& question = *found->second;
  question.kernels = DecodeKernels(loaded.kernels());
  question.build_log = loaded.build_log();
  Answer(question, loaded.error());
}

void Stream::UnloadModule(std::uint64_t module) {
  if (forked()) return;
  Exchange::Lock lock = exchange_.Enter();
  kernels_.erase(module);
  if (!ended_.ok()) return;
  v1::ClientMessage message;
  message.mutable_unload_module()->set_module(module);
  if (exchange_.Send(message).ok()) exchange_.Flush(lock);
}

Result<std::uint64_t> Stream::FindKernel(std::string_view kernel) {
  if (forked()) return Forked();
  const Exchange::Lock lock = exchange_.Enter();
  std::uint64_t found = 0;
  for (const auto& [module, names] : kernels_) {
    if (std::find(names.begin(), names.end(), kernel) == names.end()) continue;
    if (found != 0) {
      return Status(StatusCode::kInvalidArgument, reason::kAmbiguousName,
                    "kernel '" + std::string(kernel) +
                        "' is in several modules of the session: launch Module::kernel(...)");
    }
    found = module;
  }
  if (found != 0) return found;
  return Status(StatusCode::kNotFound, reason::kUnknownKernel,
                "kernel '" + std::string(kernel) + "' is in no module of the session");
}

Result<std::uint64_t> Stream::Allocate(std::uint64_t bytes) {
  if (forked()) return Forked();
  Exchange::Lock lock = exchange_.Enter();
  if (!ended_.ok()) return ended_;
  const std::uint64_t id = next_id_++;
  v1::ClientMessage message;
  message.mutable_allocate()->set_buffer(id);
  message.mutable_allocate()->set_bytes(bytes);
  Question question;
  allocations_[id] = &question;
  const Status status = Ask(lock, message, question);
  allocations_.erase(id);
  if (!status.ok()) return status;
  return id;
}

Status Stream::Free(std::uint64_t buffer) {
  v1::ClientMessage message;
  message.mutable_free()->set_buffer(buffer);
  return SendAlone(message);
}

Result<std::uint32_t> Stream::OpenQueue() {
  if (forked()) return Forked();
  Exchange::Lock lock = exchange_.Enter();
  if (!ended_.ok()) return ended_;
  const auto queue = static_cast<std::uint32_t>(std::countr_one(queues_));
  if (queue >= kQueues) {
    return Status(StatusCode::kResourceExhausted, reason::kTooMany,
                  "a session has at most 64 queues: close one with CloseQueue");
  }
  v1::ClientMessage message;
  message.mutable_open_queue()->set_queue(queue);
  if (Status status = exchange_.Send(message); !status.ok()) return status;
  queues_ |= std::uint64_t{1} << queue;
  exchange_.Flush(lock);
  return queue;
}

Status Stream::CloseQueue(std::uint32_t queue) {
  if (forked()) return Forked();
  Exchange::Lock lock = exchange_.Enter();
  if (!ended_.ok()) return ended_;
  if (queue == 0 || queue >= kQueues || (queues_ >> queue & 1) == 0) {
    return Status(StatusCode::kNotFound, reason::kUnknownQueue,
                  "queue " + std::to_string(queue) +
                      " is not one that OpenQueue gave (queue 0 stays with its session)");
  }
  v1::ClientMessage message;
  message.mutable_close_queue()->set_queue(queue);
  if (Status status = exchange_.Send(message); !status.ok()) return status;
  queues_ &= ~(std::uint64_t{1} << queue);
  exchange_.Flush(lock);
  return Status::Ok();
}

Status Stream::ChangeShare(const DeclaredShare& share) {
  if (Status status = CheckShare(share); !status.ok()) return status;
  if (forked()) return Forked();
  Exchange::Lock lock = exchange_.Enter();
  if (!ended_.ok()) return ended_;
  v1::ClientMessage message;
  EncodeShare(share, message.mutable_change_share()->mutable_share());
  Question question;
  share_changes_.push_back(&question);
  const Status status = Ask(lock, message, question);
  std::erase(share_changes_, &question);
  if (status.ok()) share_ = share;
  return status;
}

DeclaredShare Stream::share() {
  if (forked()) return {};
  const Exchange::Lock lock = exchange_.Enter();
  return share_;
}

Status Stream::Drain(Deadline deadline) {
  if (forked()) return Forked();
  {
    Exchange::Lock lock = exchange_.Enter();
    if (!ended_.ok()) return ended_;
    if (!said_goodbye_) {
      said_goodbye_ = true;
      v1::ClientMessage message;
      message.mutable_goodbye();
      if (Status status = exchange_.Send(message); !status.ok()) return status;
    }
    if (!exchange_.Await(lock, over_, deadline)) {
      return Status(
          StatusCode::kDeadlineExceeded, reason::kWaitTimedOut,
          "the session still has work after the time given to drain it: wait on, or close "
          "it to cancel the rest");
    }
    if (ended_.reason() != reason::kSessionClosed) return ended_;
  }
  StopCallbacks();
  return Status::Ok();
}

void Stream::Close(bool patiently) {
  if (forked()) return;
  {
    Exchange::Lock lock = exchange_.Enter();
    closing_ = true;
    // After a goodbye the daemon takes a closed stream for patience.
    if (!over_.done() && !said_goodbye_) {
      exchange_.HalfClose();
      const Clock::duration limit =
          patiently ? Clock::duration(kCloseLimit) : Clock::duration(kLeaveLimit);
      exchange_.Await(lock, over_, Clock::now() + limit);
    }
    if (!over_.done()) {
      exchange_.Cancel();
      if (!exchange_.Await(lock, over_, Clock::now() + kCancelLimit)) {
        exchange_.Abandon(lock, Status(StatusCode::kUnavailable, reason::kDaemonLost,
                                       "the daemon took nothing more before the session was "
                                       "closed; is gpuschedd stopped?"));
      }
    }
  }
  StopCallbacks();
}

}  // namespace gpusched::internal
