// The Admin service: each call a question to control, an answer, or a typed error.
#include <utility>  // Boost 1.74's asio forgets it under C++20.

#include "rpc/admin_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "executor/clock.h"
#include "gpusched/reasons.h"
#include "gpusched/v1/admin.grpc.pb.h"
#include "rpc/admin_wire.h"
#include "rpc/cut_off.h"
#include "rpc/endpoint.h"
#include "rpc/health_service.h"
#include "rpc/unix_door.h"
#include "rpc/wire.h"

namespace gpusched::rpc {
namespace {

// A watcher holds a thread; an operator has a few.
constexpr int kWatchers = 64;
constexpr std::chrono::milliseconds kLeastPeriod(50);
constexpr std::chrono::milliseconds kDefaultPeriod(1'000);
// How long a watcher sleeps before it looks whether its client still is there.
constexpr std::chrono::milliseconds kLook(100);
constexpr std::chrono::milliseconds kGoodbyeTime(200);

// What a call's trailers may hold, at either end: gRPC's own 8 KiB are a dozen faults of a file,
// and beyond them the client would read of a lost connection. The client allows as much.
constexpr int kMetadataBytes = 256 << 10;
// An error's message, its faults besides, and what other clients than ours show. Together, in
// base 64, they stay far below the above.
constexpr std::size_t kMessageBytes = 16 << 10;
constexpr std::size_t kFaultBytes = 96 << 10;
constexpr std::size_t kPlainMessageBytes = 1 << 10;

// Cut between two characters of UTF-8.
std::string Cut(const std::string& text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes) + " ...";
}

// As many faults as fit, and how many more there are.
void Bound(v1::Error& error) {
  error.set_message(Cut(error.message(), kMessageBytes));
  std::size_t bytes = 0;
  int kept = 0;
  for (; kept < error.fields_size(); ++kept) {
    bytes += error.fields(kept).ByteSizeLong();
    if (bytes > kFaultBytes) break;
  }
  const int more = error.fields_size() - kept;
  if (more == 0) return;
  error.mutable_fields()->DeleteSubrange(kept, more);
  error.add_fields()->set_message("and " + std::to_string(more) + " more");
}

// Every error travels as gRPC's own code and message, with the typed one as its details.
grpc::Status Failed(v1::Error error) {
  Bound(error);
  return {static_cast<grpc::StatusCode>(error.code()), Cut(error.message(), kPlainMessageBytes),
          error.SerializeAsString()};
}

grpc::Status Failed(const Status& status) {
  v1::Error error;
  EncodeError(status, error);
  return Failed(std::move(error));
}

grpc::Status Failed(const control::PolicyFault& fault) {
  v1::Error error;
  EncodeError(fault.status, error);
  for (const FieldError& field : fault.fields) {
    v1::FieldError& row = *error.add_fields();
    row.set_field(field.field);
    row.set_message(field.message);
  }
  return Failed(std::move(error));
}

ParameterText TextOf(const google::protobuf::Map<std::string, std::string>& parameters) {
  return {parameters.begin(), parameters.end()};
}

class AdminService final : public v1::Admin::Service {
 public:
  AdminService(const AdminServer::Options& options, control::PolicyControl& policy,
               control::SessionDirectory& directory, const UnixDoor& door)
      : reload_(options.reload), policy_(policy), directory_(directory), door_(door) {}

  // Watchers return soon.
  void Stop() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    stopped_.notify_all();
  }

  grpc::Status ListDevices(grpc::ServerContext*, const v1::ListDevicesRequest*,
                           v1::ListDevicesResponse* response) override {
    for (const executor::Snapshot& snapshot : directory_.Snapshots()) {
      EncodeSnapshotDevice(snapshot, *response->add_devices());
    }
    return grpc::Status::OK;
  }

  grpc::Status ListSessions(grpc::ServerContext*, const v1::ListSessionsRequest*,
                            v1::ListSessionsResponse* response) override {
    for (const executor::Snapshot& snapshot : directory_.Snapshots()) {
      for (const executor::SessionSnapshot& session : snapshot.sessions) {
        EncodeSession(session, snapshot, *response->add_sessions());
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status ListModules(grpc::ServerContext*, const v1::ListModulesRequest*,
                           v1::ListModulesResponse* response) override {
    for (const executor::ModuleSnapshot& module : directory_.Modules()) {
      auto& row = *response->add_modules();
      row.set_session(module.session.serial);
      row.set_session_name(module.session_name);
      row.set_module(module.module);
      for (const device::KernelInfo& kernel : module.kernels) {
        EncodeKernel(kernel, *row.add_kernels());
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status GetPolicy(grpc::ServerContext*, const v1::GetPolicyRequest*,
                         v1::Policy* response) override {
    Encode(policy_.current(), *response);
    return grpc::Status::OK;
  }

  grpc::Status ListPolicyKinds(grpc::ServerContext*, const v1::ListPolicyKindsRequest*,
                               v1::ListPolicyKindsResponse* response) override {
    EncodeKinds(*response);
    return grpc::Status::OK;
  }

  grpc::Status ValidatePolicy(grpc::ServerContext*, const v1::ValidatePolicyRequest* request,
                              v1::Policy* response) override {
    return Answer(control::PolicyControl::Validate(request->kind(), TextOf(request->parameters())),
                  *response);
  }

  grpc::Status UpdatePolicy(grpc::ServerContext* context, const v1::UpdatePolicyRequest* request,
                            v1::Policy* response) override {
    return Answer(policy_.Apply({.kind = request->kind(),
                                 .parameters = TextOf(request->parameters()),
                                 .etag = request->etag(),
                                 .lasts = Duration(request->for_ns()),
                                 .source = Who(*context)}),
                  *response);
  }

  grpc::Status ListPolicyHistory(grpc::ServerContext*, const v1::ListPolicyHistoryRequest*,
                                 v1::ListPolicyHistoryResponse* response) override {
    for (const control::PolicyRecord& record : policy_.History()) {
      Encode(record, *response->add_policies());
    }
    return grpc::Status::OK;
  }

  grpc::Status RollBackPolicy(grpc::ServerContext* context,
                              const v1::RollBackPolicyRequest* request,
                              v1::Policy* response) override {
    return Answer(policy_.RollBack(request->generation(), Who(*context)), *response);
  }

  grpc::Status ReloadConfiguration(grpc::ServerContext* context,
                                   const v1::ReloadConfigurationRequest*,
                                   v1::ReloadConfigurationResponse* response) override {
    const ReloadReport report = reload_(Who(*context));
    if (report.status.ok()) {
      response->set_changed(report.changed);
      for (const std::string& key : report.needs_restart) response->add_needs_restart(key);
      return grpc::Status::OK;
    }
    v1::Error error;
    EncodeError(report.status, error);
    for (const ReloadReport::Fault& fault : report.faults) {
      v1::FieldError& row = *error.add_fields();
      row.set_field(fault.field);
      row.set_message(fault.message);
      row.set_line(fault.line);
      row.set_column(fault.column);
    }
    return Failed(std::move(error));
  }

  grpc::Status PauseSessions(grpc::ServerContext* context, const v1::SessionSelector* request,
                             v1::SessionList* response) override {
    return Answer(directory_.Pause(request->session(), true, Who(*context)), *response);
  }

  grpc::Status ResumeSessions(grpc::ServerContext* context, const v1::SessionSelector* request,
                              v1::SessionList* response) override {
    return Answer(directory_.Pause(request->session(), false, Who(*context)), *response);
  }

  grpc::Status KillSessions(grpc::ServerContext* context, const v1::SessionSelector* request,
                            v1::SessionList* response) override {
    return Answer(directory_.Kill(request->session(), Who(*context)), *response);
  }

  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::Snapshot>* writer) override {
    const Watcher watcher(*this);
    if (!watcher.admitted) return TooManyWatchers();
    Duration period = Duration(request->period_ns());
    if (period <= Duration::zero()) period = kDefaultPeriod;
    period = std::max<Duration>(period, kLeastPeriod);
    v1::Snapshot snapshot;
    Time next = executor::Now();
    do {
      TakeSnapshot(snapshot);
      next += period;
    } while (writer->Write(snapshot) && AwaitUntil(next, *context));
    return grpc::Status::OK;
  }

  grpc::Status WatchSlices(grpc::ServerContext* context, const v1::WatchSlicesRequest*,
                           grpc::ServerWriter<v1::SliceBatch>* writer) override {
    const Watcher watcher(*this);
    if (!watcher.admitted) return TooManyWatchers();
    const auto feed = std::make_shared<executor::SliceFeed>();
    for (executor::Executor* executor : directory_.executors()) executor->Watch(feed);
    // Tells the client that from here on nothing is missed.
    v1::SliceBatch message;
    bool reading = writer->Write(message);
    while (reading && !context->IsCancelled() && !stopping()) {
      const executor::SliceFeed::Batch batch = feed->Take(kLook);
      if (batch.slices.empty() && batch.dropped == 0) continue;
      message.Clear();
      for (const executor::FedSlice& slice : batch.slices)
        EncodeSlice(slice, *message.add_slices());
      message.set_dropped(batch.dropped);
      reading = writer->Write(message);
    }
    for (executor::Executor* executor : directory_.executors()) executor->Unwatch(feed);
    return grpc::Status::OK;
  }

 private:
  // Counts itself among the watchers.
  struct Watcher {
    explicit Watcher(AdminService& owner) : service(owner) {
      admitted = service.watchers_.fetch_add(1) < kWatchers;
    }
    ~Watcher() { service.watchers_.fetch_sub(1); }
    Watcher(const Watcher&) = delete;
    Watcher& operator=(const Watcher&) = delete;
    AdminService& service;
    bool admitted = false;
  };

  static grpc::Status TooManyWatchers() {
    return Failed(Status(StatusCode::kResourceExhausted, reason::kTooMany,
                         "there are " + std::to_string(kWatchers) + " watchers already"));
  }

  std::string Who(const grpc::ServerContext& context) const {
    return "operator " + door_.Who(context.peer());
  }

  void Encode(const control::PolicyRecord& record, v1::Policy& to) const {
    EncodePolicy(record, policy_.FileDiffers(record), to);
  }

  grpc::Status Answer(const control::PolicyAnswer<control::PolicyRecord>& answer,
                      v1::Policy& to) const {
    if (!answer.ok()) return Failed(answer.fault);
    Encode(answer.value, to);
    return grpc::Status::OK;
  }

  grpc::Status Answer(const Result<control::SessionDirectory::Found>& found,
                      v1::SessionList& to) const {
    if (!found.ok()) return Failed(found.status());
    const executor::Snapshot snapshot = found->executor->TakeSnapshot();
    for (const executor::SessionSnapshot& session : snapshot.sessions) {
      if (session.status.session.serial != found->session) continue;
      EncodeSession(session, snapshot, *to.add_sessions());
      return grpc::Status::OK;
    }
    // Killed, and gone already.
    v1::Session& gone = *to.add_sessions();
    gone.set_id(found->session);
    gone.set_name(found->name);
    gone.set_device(found->executor->device_info().uuid);
    return grpc::Status::OK;
  }

  void TakeSnapshot(v1::Snapshot& to) const {
    to.Clear();
    Encode(policy_.current(), *to.mutable_policy());
    for (const executor::Snapshot& snapshot : directory_.Snapshots()) {
      to.set_time_ns(snapshot.now.time_since_epoch().count());
      EncodeSnapshotDevice(snapshot, *to.add_devices());
      for (const executor::SessionSnapshot& session : snapshot.sessions) {
        EncodeSession(session, snapshot, *to.add_sessions());
      }
    }
  }

  // False: the client went, or the daemon is stopping.
  bool AwaitUntil(Time when, const grpc::ServerContext& context) {
    std::unique_lock lock(mutex_);
    while (!stopping_ && !context.IsCancelled()) {
      const Duration left = when - executor::Now();
      if (left <= Duration::zero()) return true;
      stopped_.wait_for(lock, std::min<Duration>(left, kLook));
    }
    return false;
  }

  bool stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  const std::function<ReloadReport(const std::string&)> reload_;
  control::PolicyControl& policy_;
  control::SessionDirectory& directory_;
  const UnixDoor& door_;
  std::atomic<int> watchers_{0};
  // For the end of the daemon only.
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
};

}  // namespace

class AdminServer::Parts {
 public:
  Parts(const Options& options, control::PolicyControl& policy,
        control::SessionDirectory& directory, const Endpoint& endpoint,
        std::unique_ptr<UnixDoor> door)
      : endpoint_(endpoint.text),
        door_(std::move(door)),
        service_(options, policy, directory, *door_) {}

  Status Start() {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytes);
    builder.RegisterService(&service_);
    builder.RegisterService(&health_);
    // With such a queue the service's own threads do not poll; see session_server.h.
    unpolled_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return Status(StatusCode::kInternal, reason::kBadConfiguration,
                    "the admin service did not start");
    }
    door_->Open([this](int fd) { grpc::AddInsecureChannelFromFd(server_.get(), fd); });
    return Status::Ok();
  }

  ~Parts() {
    service_.Stop();
    health_.Stop();
    door_->Close();
    const CutOff cut_off({endpoint_}, kGoodbyeTime);
    if (server_ != nullptr) server_->Shutdown(executor::WallClock() + kGoodbyeTime);
    if (unpolled_ == nullptr) return;
    unpolled_->Shutdown();
    void* tag = nullptr;
    for (bool ok = false; unpolled_->Next(&tag, &ok);) {}
  }

 private:
  const std::string endpoint_;
  std::unique_ptr<UnixDoor> door_;
  AdminService service_;
  HealthService health_{"gpusched.v1.Admin"};
  std::unique_ptr<grpc::ServerCompletionQueue> unpolled_;
  std::unique_ptr<grpc::Server> server_;
};

Result<std::unique_ptr<AdminServer>> AdminServer::Start(const Options& options,
                                                        control::PolicyControl& policy,
                                                        control::SessionDirectory& directory) {
  const Result<Endpoint> endpoint = Endpoint::Parse(options.endpoint);
  if (!endpoint.ok()) return endpoint.status();
  if (!endpoint->is_unix()) {
    return Status(StatusCode::kInvalidArgument, reason::kInsecureEndpoint,
                  "admin.endpoint '" + options.endpoint +
                      "' must be a unix socket: whoever reaches it rules the daemon");
  }
  auto door = UnixDoor::Make(endpoint->path, options.group.empty() ? 0600 : 0660, options.group);
  if (!door.ok()) return door.status();
  auto parts = std::make_unique<Parts>(options, policy, directory, *endpoint, *std::move(door));
  if (Status started = parts->Start(); !started.ok()) return started;
  return std::unique_ptr<AdminServer>(new AdminServer(std::move(parts)));
}

AdminServer::AdminServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
AdminServer::~AdminServer() = default;

}  // namespace gpusched::rpc
