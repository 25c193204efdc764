// A stand-in for the daemon: one gRPC service with a thread per session.
#include "fake_daemon.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "gpusched/reasons.h"
#include "gpusched/v1/session.grpc.pb.h"

namespace gpusched::test {
namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr std::chrono::seconds kPatience{30};

void ToWire(const Status& status, v1::Error* error) {
  error->set_code(static_cast<int>(status.code()));
  error->set_reason(status.reason());
  error->set_message(status.message());
}

std::string NewEndpoint() {
  std::string folder = "/tmp/gpusched-client-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  return "unix:" + folder + "/fake.sock";
}

using Stream = grpc::ServerReaderWriter<v1::ServerFrame, v1::ClientFrame>;

// A job, with the bytes of its copies into buffers by operation: it takes them when it comes.
struct Taken {
  v1::Submit submit;
  google::protobuf::RepeatedPtrField<v1::Operation> operations;
  std::map<int, std::string> sources;
  Status refusal;
};

// One session; its mutex is taken by the stream's own thread and by the test's.
struct FakeSession {
  std::mutex mutex;
  Stream* stream = nullptr;  // none: over
  grpc::ServerContext* context = nullptr;
  std::map<std::uint64_t, std::string> buffers;
  std::map<std::uint64_t, std::string> staged;
  std::map<std::uint64_t, v1::RegisterTemplate> templates;
  std::deque<Taken> held;
  std::set<std::uint64_t> cancelled;
  bool goodbye = false;

  void Write(const v1::ServerFrame& frame) {
    if (stream != nullptr) stream->Write(frame);
  }
};

}  // namespace

class FakeDaemon::Service : public v1::Sessions::Service {
 public:
  explicit Service(FakeDaemonOptions given) : options(std::move(given)) {
    const bool temporary = options.endpoint.empty();
    if (temporary) options.endpoint = NewEndpoint();
    if (temporary) folder_ = options.endpoint.substr(5, options.endpoint.rfind('/') - 5);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(options.endpoint, grpc::InsecureServerCredentials());
    builder.SetMaxReceiveMessageSize(2 << 20);
    builder.RegisterService(this);
    server = builder.BuildAndStart();
  }
  ~Service() override {
    Vanish();
    if (folder_.empty()) return;
    unlink(options.endpoint.substr(5).c_str());
    rmdir(folder_.c_str());
  }

  void Vanish() {
    if (!server) return;
    server->Shutdown(std::chrono::system_clock::now());
    server->Wait();
    server.reset();
  }

  grpc::Status Attach(grpc::ServerContext* context, Stream* stream) override {
    const auto session = std::make_shared<FakeSession>();
    session->stream = stream;
    session->context = context;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      sessions_.push_back(session);
    }
    v1::ClientFrame frame;
    while (!session->goodbye && AwaitReading() && stream->Read(&frame)) {
      for (const v1::ClientMessage& message : frame.messages()) {
        const std::lock_guard<std::mutex> lock(session->mutex);
        if (!Take(*session, message)) break;
      }
    }
    const std::lock_guard<std::mutex> lock(session->mutex);
    if (session->goodbye) Say(*session, [](v1::ServerMessage* m) { m->mutable_ended(); });
    session->stream = nullptr;
    return grpc::Status::OK;
  }

  template <typename Condition>
  bool Await(Condition condition) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
  }

  void Release(std::size_t count) {
    std::vector<std::shared_ptr<FakeSession>> sessions;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      sessions = sessions_;
    }
    for (const std::shared_ptr<FakeSession>& session : sessions) {
      const std::lock_guard<std::mutex> lock(session->mutex);
      v1::ServerFrame frame;
      for (; count > 0 && !session->held.empty(); --count) {
        Report(*session, session->held.front(), &frame);
        session->held.pop_front();
      }
      if (frame.messages_size() > 0) session->Write(frame);
    }
  }

  void EndSessions(const Status& why) {
    std::vector<std::shared_ptr<FakeSession>> sessions;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      sessions = sessions_;
    }
    for (const std::shared_ptr<FakeSession>& session : sessions) {
      const std::lock_guard<std::mutex> lock(session->mutex);
      Say(*session,
          [&why](v1::ServerMessage* m) { ToWire(why, m->mutable_ended()->mutable_error()); });
      if (session->stream != nullptr) session->context->TryCancel();
    }
  }

  void SetReading(bool reading) {
    const std::lock_guard<std::mutex> lock(mutex_);
    reading_ = reading;
    changed_.notify_all();
  }

  FakeDaemonOptions options;
  std::unique_ptr<grpc::Server> server;
  std::vector<SeenJob> jobs;
  std::vector<std::string> messages;
  std::mutex mutex_;
  std::condition_variable changed_;

 private:
  bool AwaitReading() {
    return Await([this] { return reading_; });
  }

  template <typename Fill>
  void Say(FakeSession& session, Fill fill) {
    v1::ServerFrame frame;
    fill(frame.add_messages());
    session.Write(frame);
  }

  void Note(const std::string& kind) {
    const std::lock_guard<std::mutex> lock(mutex_);
    messages.push_back(kind);
    changed_.notify_all();
  }

  // False: the session is over.
  bool Take(FakeSession& session, const v1::ClientMessage& message) {
    switch (message.what_case()) {
      case v1::ClientMessage::kHello: return Greet(session);
      case v1::ClientMessage::kData: {
        Note("data");
        std::string& bytes = session.staged[message.data().staging()];
        if (bytes.size() != message.data().offset()) std::abort();
        bytes += message.data().content();
        break;
      }
      case v1::ClientMessage::kAllocate: Allocate(session, message.allocate()); break;
      case v1::ClientMessage::kFree:
        Note("free");
        session.buffers.erase(message.free().buffer());
        break;
      case v1::ClientMessage::kLoadModule: Load(session, message.load_module()); break;
      case v1::ClientMessage::kUnloadModule: Note("unload"); break;
      case v1::ClientMessage::kRegisterTemplate:
        Register(session, message.register_template());
        break;
      case v1::ClientMessage::kForgetTemplate: Note("forget"); break;
      case v1::ClientMessage::kOpenQueue: Note("open queue"); break;
      case v1::ClientMessage::kCloseQueue: Note("close queue"); break;
      case v1::ClientMessage::kSubmit: Submit(session, message.submit()); break;
      case v1::ClientMessage::kCancel:
        session.cancelled.insert(message.cancel().job());
        Note("cancel");
        break;
      case v1::ClientMessage::kChangeShare:
        Note("share");
        Say(session, [this](v1::ServerMessage* m) {
          m->mutable_answer()->set_subject(v1::Answer::SHARE);
          if (!options.refuse_share.ok())
            ToWire(options.refuse_share, m->mutable_answer()->mutable_error());
        });
        break;
      case v1::ClientMessage::kGoodbye:
        Note("goodbye");
        session.goodbye = true;
        break;
      case v1::ClientMessage::WHAT_NOT_SET: std::abort();
    }
    return true;
  }

  bool Greet(FakeSession& session) {
    Note("hello");
    if (!options.refuse_hello.ok()) {
      Say(session, [this](v1::ServerMessage* m) {
        ToWire(options.refuse_hello, m->mutable_ended()->mutable_error());
      });
      session.goodbye = true;
      session.stream = nullptr;
      return false;
    }
    Say(session, [this](v1::ServerMessage* m) {
      v1::Welcome* welcome = m->mutable_welcome();
      welcome->set_version(1);
      welcome->set_session(++last_session_);
      welcome->mutable_device()->set_uuid("fake-0");
      welcome->mutable_device()->set_backend(options.backend);
      welcome->set_window_jobs(options.window_jobs);
      welcome->set_window_bytes(options.window_bytes);
      welcome->mutable_share()->set_weight(100);
      welcome->set_memory_bytes(options.memory);
    });
    return true;
  }

  void Allocate(FakeSession& session, const v1::Allocate& allocate) {
    Note("allocate");
    const bool fits = allocate.bytes() <= options.memory;
    if (fits) session.buffers[allocate.buffer()].resize(allocate.bytes());
    Say(session, [&](v1::ServerMessage* m) {
      m->mutable_answer()->set_subject(v1::Answer::BUFFER);
      m->mutable_answer()->set_id(allocate.buffer());
      if (!fits) {
        ToWire(Status(StatusCode::kResourceExhausted, reason::kQuotaExceeded, "over the quota"),
               m->mutable_answer()->mutable_error());
      }
    });
  }

  // An image names its kernels, one a line; "bad" does not build.
  void Load(FakeSession& session, const v1::LoadModule& load) {
    Note("load");
    Say(session, [&](v1::ServerMessage* m) {
      v1::ModuleLoaded* loaded = m->mutable_module_loaded();
      loaded->set_module(load.module());
      std::string text = load.images(0).content();
      if (text == "bad") {
        ToWire(Status(StatusCode::kInvalidArgument, reason::kBuildFailed, "line 1: bad"),
               loaded->mutable_error());
        return;
      }
      loaded->set_build_log("fine");
      for (std::size_t end; !text.empty();
           text.erase(0, end == std::string::npos ? end : end + 1)) {
        end = text.find('\n');
        // A line is a name, or as the virtual device reads it: "kernel NAME ...".
        std::string name = text.substr(0, end);
        if (name.starts_with("kernel ")) name = name.substr(7, name.find(' ', 7) - 7);
        loaded->add_kernels()->set_name(name);
      }
    });
  }

  void Register(FakeSession& session, const v1::RegisterTemplate& registered) {
    Note("register");
    if (options.refuse_template.ok()) {
      session.templates[registered.template_id()] = registered;
      return;
    }
    Say(session, [&](v1::ServerMessage* m) {
      m->mutable_answer()->set_subject(v1::Answer::TEMPLATE);
      m->mutable_answer()->set_id(registered.template_id());
      ToWire(options.refuse_template, m->mutable_answer()->mutable_error());
    });
  }

  void Submit(FakeSession& session, const v1::Submit& submit) {
    SeenJob seen{.id = submit.job(),
                 .queue = submit.queue(),
                 .template_id = submit.template_id(),
                 .tag = submit.tag(),
                 .operations = submit.operations_size(),
                 .changes = submit.changes_size(),
                 .client = std::chrono::nanoseconds(submit.client_ns()),
                 .deadline = std::chrono::nanoseconds(submit.deadline_ns()),
                 .skip_if_late = submit.skip_if_late(),
                 .first_kernel = {},
                 .first_launch = {}};
    if (submit.operations_size() > 0) {
      seen.first_launch = submit.operations(0).launch();
      seen.first_kernel = seen.first_launch.kernel();
    }
    Taken taken = TakeStagings(session, submit);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      jobs.push_back(seen);
    }
    if (options.hold_jobs) session.held.push_back(std::move(taken));
    Note("submit");
    if (options.hold_jobs) return;
    v1::ServerFrame frame;
    Report(session, taken, &frame);
    session.Write(frame);
  }

  // As the daemon does: of a template's copies those without a staging of this submission's own
  // have no bytes.
  Taken TakeStagings(FakeSession& session, const v1::Submit& submit) {
    Taken taken{.submit = submit, .operations = submit.operations(), .sources = {}, .refusal = {}};
    if (submit.template_id() != 0) {
      const auto found = session.templates.find(submit.template_id());
      if (found == session.templates.end()) {
        taken.refusal = Status(StatusCode::kNotFound, reason::kUnknownTemplate, "no such template");
        return taken;
      }
      taken.operations = found->second.operations();
      for (v1::Operation& operation : taken.operations) {
        if (operation.has_copy_in()) operation.mutable_copy_in()->clear_staging();
      }
      for (const v1::ArgumentChange& change : submit.changes()) {
        if (change.staging() == 0) continue;
        taken.operations.Mutable(static_cast<int>(change.operation()))
            ->mutable_copy_in()
            ->set_staging(change.staging());
      }
    }
    for (int i = 0; i < taken.operations.size(); ++i) {
      if (!taken.operations[i].has_copy_in()) continue;
      const v1::CopyIn& copy = taken.operations[i].copy_in();
      auto staged = session.staged.extract(copy.staging());
      if (!staged.empty()) taken.sources[i] = std::move(staged.mapped());
      if (taken.sources[i].size() != copy.bytes()) {
        taken.refusal = Status(StatusCode::kFailedPrecondition, reason::kDataOutOfOrder,
                               "send its Data before the Submit");
      }
    }
    return taken;
  }

  void Report(FakeSession& session, const Taken& taken, v1::ServerFrame* frame) {
    const v1::Submit& submit = taken.submit;
    const bool cancelled = session.cancelled.erase(submit.job()) > 0;
    if (!cancelled && taken.refusal.ok() && options.fail_jobs.ok()) Run(session, taken, frame);
    v1::JobReport* report = frame->add_messages()->mutable_job();
    report->set_job(submit.job());
    report->set_client_ns(submit.client_ns());
    report->set_queued_ns(1'000);
    report->set_run_ns(2'000);
    report->set_charged_ns(2'000);
    report->set_generation(7);
    report->set_outcome(v1::JOB_OUTCOME_DONE);
    if (cancelled) {
      report->set_outcome(v1::JOB_OUTCOME_CANCELLED);
      ToWire(Status(StatusCode::kCancelled, reason::kCancelled, "by the client"),
             report->mutable_error());
    } else if (!taken.refusal.ok()) {
      report->set_outcome(v1::JOB_OUTCOME_REFUSED);
      ToWire(taken.refusal, report->mutable_error());
    } else if (!options.fail_jobs.ok()) {
      report->set_outcome(v1::JOB_OUTCOME_FAILED);
      ToWire(options.fail_jobs, report->mutable_error());
    }
  }

  void Run(FakeSession& session, const Taken& taken, v1::ServerFrame* frame) {
    std::uint64_t out = 0;
    for (int i = 0; i < taken.operations.size(); ++i) {
      const v1::Operation& operation = taken.operations[i];
      if (operation.has_copy_in()) {
        const v1::CopyIn& copy = operation.copy_in();
        session.buffers[copy.buffer()].replace(copy.offset(), copy.bytes(), taken.sources.at(i));
      } else if (operation.has_fill()) {
        const v1::Fill& fill = operation.fill();
        session.buffers[fill.buffer()].replace(fill.offset(), fill.bytes(), fill.bytes(),
                                               static_cast<char>(fill.value()));
      } else if (operation.has_copy_out()) {
        const v1::CopyOut& copy = operation.copy_out();
        for (std::uint64_t done = 0; done < copy.bytes(); done += kPiece) {
          v1::Data* data = frame->add_messages()->mutable_result();
          data->set_staging(taken.submit.job());
          data->set_offset(out + done);
          data->set_content(session.buffers[copy.buffer()].substr(
              copy.offset() + done, std::min<std::uint64_t>(kPiece, copy.bytes() - done)));
        }
        out += copy.bytes();
      }
    }
  }

  std::vector<std::shared_ptr<FakeSession>> sessions_;
  bool reading_ = true;
  std::atomic<std::uint64_t> last_session_{0};
  std::string folder_;
};

FakeDaemon::FakeDaemon(FakeDaemonOptions options)
    : service_(std::make_unique<Service>(std::move(options))) {}
FakeDaemon::~FakeDaemon() = default;

std::string FakeDaemon::endpoint() const { return service_->options.endpoint; }

bool FakeDaemon::AwaitJobs(std::size_t count) const {
  return service_->Await([&] { return service_->jobs.size() >= count; });
}

std::vector<SeenJob> FakeDaemon::jobs() const {
  const std::lock_guard<std::mutex> lock(service_->mutex_);
  return service_->jobs;
}

std::vector<std::string> FakeDaemon::messages() const {
  const std::lock_guard<std::mutex> lock(service_->mutex_);
  return service_->messages;
}

bool FakeDaemon::AwaitMessage(const std::string& kind, std::size_t count) const {
  return service_->Await([&] {
    const auto& seen = service_->messages;
    return static_cast<std::size_t>(std::count(seen.begin(), seen.end(), kind)) >= count;
  });
}

void FakeDaemon::Release(std::size_t count) { service_->Release(count); }
void FakeDaemon::StopReading() { service_->SetReading(false); }
void FakeDaemon::ReadAgain() { service_->SetReading(true); }
void FakeDaemon::EndSessions(const Status& why) { service_->EndSessions(why); }
void FakeDaemon::Vanish() { service_->Vanish(); }

}  // namespace gpusched::test
