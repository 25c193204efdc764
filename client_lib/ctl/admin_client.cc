// The operator's calls over gRPC.
#include "ctl/admin_client.h"

#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <utility>

#include "gpusched/reasons.h"
#include "gpusched/v1/admin.grpc.pb.h"
#include "gpusched/v1/error.pb.h"

namespace gpusched::admin {
namespace {

constexpr char kDefaultEndpoint[] = "unix:/run/gpusched/admin.sock";
// A daemon with thousands of sessions answers with megabytes.
constexpr int kReceiveLimit = 64 << 20;
// Errors travel in the trailers, which the daemon keeps below this.
constexpr int kMetadataLimit = 256 << 10;
// Long enough for a daemon that has just been started.
constexpr std::chrono::seconds kConnectLimit{2};

Status Unreachable(const std::string& endpoint) {
  return Status(StatusCode::kUnavailable, reason::kDaemonUnreachable,
                "no daemon answers at '" + endpoint +
                    "': start gpuschedd, or give its admin socket with --endpoint or "
                    "GPUSCHED_ADMIN");
}

// The daemon's own error travels in the details; without it the failure is the connection's.
Status Decode(const grpc::Status& status, const std::string& endpoint, FieldErrors* fields) {
  if (status.ok()) return Status::Ok();
  v1::Error error;
  if (!status.error_details().empty() && error.ParseFromString(status.error_details()) &&
      error.code() != 0) {
    if (fields != nullptr) {
      for (const v1::FieldError& field : error.fields()) {
        fields->push_back({field.field(), field.message(), field.line(), field.column()});
      }
    }
    return Status(static_cast<StatusCode>(error.code()), error.reason(), error.message());
  }
  const grpc::StatusCode code = status.error_code();
  if (code == grpc::StatusCode::CANCELLED) {
    return Status(StatusCode::kCancelled, reason::kCancelled, "the watch was stopped");
  }
  if (code == grpc::StatusCode::UNIMPLEMENTED) {
    return Status(StatusCode::kFailedPrecondition, reason::kVersionMismatch,
                  "the endpoint does not know this call: is it the session socket, or a daemon of "
                  "another version?");
  }
  if (code == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return Status(StatusCode::kDeadlineExceeded, reason::kWaitTimedOut,
                  "the daemon at '" + endpoint + "' did not answer within " +
                      std::to_string(kCallLimit.count()) + " s: is it stopped, or overloaded?");
  }
  return Status(StatusCode::kUnavailable, reason::kDaemonLost,
                "the connection to the daemon at '" + endpoint +
                    "' was lost: is gpuschedd running there? (--endpoint or GPUSCHED_ADMIN names "
                    "another admin socket.) gRPC says: " +
                    status.error_message());
}

Device Decode(const v1::Device& from) {
  Device to;
  to.uuid = from.uuid();
  to.name = from.name();
  to.backend = from.backend();
  to.index = from.index();
  to.memory_bytes = from.memory_bytes();
  to.memory_used_bytes = from.memory_used_bytes();
  to.compute_units = from.compute_units();
  to.order_kept = from.order_kept();
  to.can_cut = from.can_cut();
  to.lost = from.lost();
  to.preemption_bound = Duration(from.preemption_bound_ns());
  to.shortest_useful_chunk = Duration(from.shortest_useful_chunk_ns());
  to.charged = Duration(from.charged_ns());
  to.busy = Duration(from.busy_ns());
  to.commands = from.commands();
  to.slices = from.slices();
  to.preemptions = from.preemptions();
  to.rescues = from.rescues();
  to.ejections = from.ejections();
  to.sessions = from.sessions();
  return to;
}

Share Decode(const v1::Share& from) {
  return {.weight = from.weight() == 0 ? 100 : from.weight(),
          .min = from.min(),
          .max = from.max() == 0 ? 1 : from.max(),
          .strict = from.strict(),
          .priority = from.priority(),
          .latency_target = Duration(from.latency_target_ns())};
}

Session Decode(const v1::Session& from) {
  Session to;
  to.id = from.id();
  to.name = from.name();
  to.device = from.device();
  to.peer = from.peer();
  to.share = Decode(from.share());
  to.charged = Duration(from.charged_ns());
  to.shares_promised = from.asked_ns() >= 0;
  to.asked = Duration(to.shares_promised ? from.asked_ns() : 0);
  to.lag = Duration(from.lag_ns());
  to.rate = from.rate();
  to.busy = Duration(from.busy_ns());
  to.longest_wait = Duration(from.longest_wait_ns());
  to.longest_uncuttable = Duration(from.longest_uncuttable_ns());
  to.bound_in_force = Duration(from.bound_in_force_ns());
  to.paused = from.paused();
  to.at_cap = from.at_cap();
  to.runnable = from.runnable();
  to.jobs_waiting = from.jobs_waiting();
  to.jobs_running = from.jobs_running();
  to.jobs_done = from.jobs_done();
  to.jobs_failed = from.jobs_failed();
  to.jobs_cancelled = from.jobs_cancelled();
  to.jobs_skipped = from.jobs_skipped();
  to.jobs_late = from.jobs_late();
  to.slices = from.slices();
  to.preempted = from.preempted();
  to.rescues = from.rescues();
  to.commands = from.commands();
  to.memory_bytes = from.memory_bytes();
  to.memory_quota_bytes = from.memory_quota_bytes();
  to.opened = Duration(from.opened_ns());
  return to;
}

Policy Decode(const v1::Policy& from) {
  Policy to;
  to.kind = from.kind();
  to.parameters = {from.parameters().begin(), from.parameters().end()};
  to.generation = from.generation();
  to.source = from.source();
  to.etag = from.etag();
  to.since_unix_ns = from.since_unix_ns();
  to.expires_unix_ns = from.expires_unix_ns();
  to.file_differs = from.file_differs();
  to.note = from.note();
  to.honoured = {from.honoured().begin(), from.honoured().end()};
  return to;
}

std::string Describe(const v1::Parameter& parameter) {
  std::string text = std::to_string(parameter.size()) + "-byte value";
  if (parameter.kind() == v1::Parameter::BUFFER) text = "buffer";
  if (parameter.kind() == v1::Parameter::LOCAL) text = "local memory";
  return parameter.name().empty() ? text : text + " " + parameter.name();
}

Module Decode(const v1::ListModulesResponse::Module& from) {
  Module to;
  to.session = from.session();
  to.module = from.module();
  to.session_name = from.session_name();
  for (const v1::Kernel& kernel : from.kernels()) {
    Module::Kernel& add = to.kernels.emplace_back();
    add.name = kernel.name();
    add.cuttable = kernel.cuttable();
    add.whole_reason = kernel.whole_reason();
    for (const v1::Parameter& parameter : kernel.parameters()) {
      add.parameters.push_back(Describe(parameter));
    }
  }
  return to;
}

PolicyKind Decode(const v1::ListPolicyKindsResponse::Kind& from) {
  PolicyKind to;
  to.kind = from.kind();
  to.promise = from.promise();
  to.honoured = {from.honoured().begin(), from.honoured().end()};
  for (const auto& parameter : from.parameters()) {
    to.parameters.push_back(
        {parameter.name(), parameter.range(), parameter.default_value(), parameter.meaning()});
  }
  return to;
}

SliceEnd Decode(v1::Slice::End end) {
  if (end == v1::Slice::RAN_DRY) return SliceEnd::kRanDry;
  if (end == v1::Slice::PREEMPTED) return SliceEnd::kPreempted;
  if (end == v1::Slice::WITHDRAWN) return SliceEnd::kWithdrawn;
  return SliceEnd::kExpired;
}

Slice Decode(const v1::Slice& from) {
  return {.device = from.device(),
          .session = from.session(),
          .generation = from.generation(),
          .started = Duration(from.started_ns()),
          .ended = Duration(from.ended_ns()),
          .granted = Duration(from.granted_ns()),
          .charged = Duration(from.charged_ns()),
          .commands = from.commands(),
          .rescue = from.rescue(),
          .end = Decode(from.end())};
}

template <typename T, typename Repeated>
std::vector<T> DecodeAll(const Repeated& from) {
  std::vector<T> to;
  to.reserve(static_cast<std::size_t>(from.size()));
  for (const auto& item : from) to.push_back(Decode(item));
  return to;
}

Snapshot Decode(const v1::Snapshot& from) {
  Snapshot to;
  to.time = Duration(from.time_ns());
  to.policy = Decode(from.policy());
  to.devices = DecodeAll<Device>(from.devices());
  to.sessions = DecodeAll<Session>(from.sessions());
  return to;
}

SliceBatch Decode(const v1::SliceBatch& from) {
  return {.slices = DecodeAll<Slice>(from.slices()), .dropped = from.dropped()};
}

v1::SessionSelector Select(const std::string& session) {
  v1::SessionSelector selector;
  selector.set_session(session);
  return selector;
}

// A server's stream, read by the caller's own thread.
template <typename T, typename Message>
class Stream : public Feed<T> {
 public:
  Stream(std::shared_ptr<void> channel, std::string endpoint,
         std::unique_ptr<grpc::ClientContext> context,
         std::unique_ptr<grpc::ClientReader<Message>> reader)
      : channel_(std::move(channel)),
        endpoint_(std::move(endpoint)),
        context_(std::move(context)),
        reader_(std::move(reader)) {}
  ~Stream() override {
    context_->TryCancel();
    if (end_.ok()) static_cast<void>(Drain());
  }

  Result<T> Next() override {
    if (!end_.ok()) return end_;
    if (first_read_) {
      first_read_ = false;
    } else if (!reader_->Read(&message_)) {
      return Drain();
    }
    return Decode(message_);
  }

  // Reads the first message, which Next gives then.
  Status ReadFirst() {
    first_read_ = reader_->Read(&message_);
    return first_read_ ? Status::Ok() : Drain();
  }

  void Stop() override { context_->TryCancel(); }

 private:
  // Ends the call and tells why it ended.
  Status Drain() {
    while (reader_->Read(&message_)) continue;
    end_ = Decode(reader_->Finish(), endpoint_, nullptr);
    if (end_.ok()) {
      end_ = Status(StatusCode::kUnavailable, reason::kDaemonLost,
                    "the daemon ended the watch: is it stopping? Watch again when it is back");
    }
    return end_;
  }

  std::shared_ptr<void> channel_;
  const std::string endpoint_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReader<Message>> reader_;
  Message message_;
  bool first_read_ = false;
  Status end_;
};

}  // namespace

class AdminClient::Channel {
 public:
  Channel(std::shared_ptr<grpc::Channel> channel, std::string endpoint)
      : stub_(v1::Admin::NewStub(std::move(channel))), endpoint_(std::move(endpoint)) {}

  template <typename Request, typename Response>
  using Method = grpc::Status (v1::Admin::Stub::*)(grpc::ClientContext*, const Request&, Response*);

  template <typename Request, typename Response>
  Status Call(Method<Request, Response> method, const Request& request, Response* response,
              FieldErrors* fields = nullptr) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallLimit);
    return Decode((stub_.get()->*method)(&context, request, response), endpoint_, fields);
  }

  v1::Admin::Stub& stub() { return *stub_; }
  const std::string& endpoint() const { return endpoint_; }

 private:
  const std::unique_ptr<v1::Admin::Stub> stub_;
  const std::string endpoint_;
};

AdminClient::AdminClient(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}

Result<AdminClient> AdminClient::Connect(const std::string& given) {
  std::string endpoint = given;
  if (endpoint.empty()) {
    const char* from_environment = std::getenv("GPUSCHED_ADMIN");
    endpoint = from_environment != nullptr && *from_environment != '\0' ? from_environment
                                                                        : kDefaultEndpoint;
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetMaxReceiveMessageSize(kReceiveLimit);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMetadataLimit);
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + kConnectLimit)) {
    return Unreachable(endpoint);
  }
  return AdminClient(std::make_shared<Channel>(channel, endpoint));
}

Result<std::vector<Device>> AdminClient::Devices() {
  v1::ListDevicesResponse response;
  Status status =
      channel_->Call(&v1::Admin::Stub::ListDevices, v1::ListDevicesRequest(), &response);
  if (!status.ok()) return status;
  return DecodeAll<Device>(response.devices());
}

Result<std::vector<Session>> AdminClient::Sessions() {
  v1::ListSessionsResponse response;
  Status status =
      channel_->Call(&v1::Admin::Stub::ListSessions, v1::ListSessionsRequest(), &response);
  if (!status.ok()) return status;
  return DecodeAll<Session>(response.sessions());
}

Result<std::vector<Module>> AdminClient::Modules() {
  v1::ListModulesResponse response;
  Status status =
      channel_->Call(&v1::Admin::Stub::ListModules, v1::ListModulesRequest(), &response);
  if (!status.ok()) return status;
  return DecodeAll<Module>(response.modules());
}

Result<Policy> AdminClient::GetPolicy() {
  v1::Policy response;
  Status status = channel_->Call(&v1::Admin::Stub::GetPolicy, v1::GetPolicyRequest(), &response);
  if (!status.ok()) return status;
  return Decode(response);
}

Result<std::vector<PolicyKind>> AdminClient::PolicyKinds() {
  v1::ListPolicyKindsResponse response;
  Status status =
      channel_->Call(&v1::Admin::Stub::ListPolicyKinds, v1::ListPolicyKindsRequest(), &response);
  if (!status.ok()) return status;
  return DecodeAll<PolicyKind>(response.kinds());
}

Result<Policy> AdminClient::ValidatePolicy(const std::string& kind, const Parameters& parameters,
                                           FieldErrors* fields) {
  v1::ValidatePolicyRequest request;
  request.set_kind(kind);
  request.mutable_parameters()->insert(parameters.begin(), parameters.end());
  v1::Policy response;
  Status status = channel_->Call(&v1::Admin::Stub::ValidatePolicy, request, &response, fields);
  if (!status.ok()) return status;
  return Decode(response);
}

Result<Policy> AdminClient::SetPolicy(const Update& update, FieldErrors* fields) {
  v1::UpdatePolicyRequest request;
  request.set_kind(update.kind);
  request.mutable_parameters()->insert(update.parameters.begin(), update.parameters.end());
  request.set_etag(update.etag);
  request.set_for_ns(update.for_time.count());
  v1::Policy response;
  Status status = channel_->Call(&v1::Admin::Stub::UpdatePolicy, request, &response, fields);
  if (!status.ok()) return status;
  return Decode(response);
}

Result<std::vector<Policy>> AdminClient::PolicyHistory() {
  v1::ListPolicyHistoryResponse response;
  Status status = channel_->Call(&v1::Admin::Stub::ListPolicyHistory,
                                 v1::ListPolicyHistoryRequest(), &response);
  if (!status.ok()) return status;
  return DecodeAll<Policy>(response.policies());
}

Result<Policy> AdminClient::RollBackPolicy(std::uint64_t generation) {
  v1::RollBackPolicyRequest request;
  request.set_generation(generation);
  v1::Policy response;
  Status status = channel_->Call(&v1::Admin::Stub::RollBackPolicy, request, &response);
  if (!status.ok()) return status;
  return Decode(response);
}

Result<Reloaded> AdminClient::Reload(FieldErrors* fields) {
  v1::ReloadConfigurationResponse response;
  Status status = channel_->Call(&v1::Admin::Stub::ReloadConfiguration,
                                 v1::ReloadConfigurationRequest(), &response, fields);
  if (!status.ok()) return status;
  return Reloaded{
      .changed = response.changed(),
      .needs_restart = {response.needs_restart().begin(), response.needs_restart().end()}};
}

Result<std::vector<Session>> AdminClient::Pause(const std::string& session) {
  v1::SessionList response;
  Status status = channel_->Call(&v1::Admin::Stub::PauseSessions, Select(session), &response);
  if (!status.ok()) return status;
  return DecodeAll<Session>(response.sessions());
}

Result<std::vector<Session>> AdminClient::Resume(const std::string& session) {
  v1::SessionList response;
  Status status = channel_->Call(&v1::Admin::Stub::ResumeSessions, Select(session), &response);
  if (!status.ok()) return status;
  return DecodeAll<Session>(response.sessions());
}

Result<std::vector<Session>> AdminClient::Kill(const std::string& session) {
  v1::SessionList response;
  Status status = channel_->Call(&v1::Admin::Stub::KillSessions, Select(session), &response);
  if (!status.ok()) return status;
  return DecodeAll<Session>(response.sessions());
}

Result<std::unique_ptr<Feed<Snapshot>>> AdminClient::Watch(Duration period) {
  v1::WatchRequest request;
  request.set_period_ns(period.count());
  auto context = std::make_unique<grpc::ClientContext>();
  auto reader = channel_->stub().Watch(context.get(), request);
  auto feed = std::make_unique<Stream<Snapshot, v1::Snapshot>>(
      channel_, channel_->endpoint(), std::move(context), std::move(reader));
  if (Status status = feed->ReadFirst(); !status.ok()) return status;
  return std::unique_ptr<Feed<Snapshot>>(std::move(feed));
}

Result<std::unique_ptr<Feed<SliceBatch>>> AdminClient::WatchSlices() {
  auto context = std::make_unique<grpc::ClientContext>();
  auto reader = channel_->stub().WatchSlices(context.get(), v1::WatchSlicesRequest());
  auto feed = std::make_unique<Stream<SliceBatch, v1::SliceBatch>>(
      channel_, channel_->endpoint(), std::move(context), std::move(reader));
  if (Status status = feed->ReadFirst(); !status.ok()) return status;
  return std::unique_ptr<Feed<SliceBatch>>(std::move(feed));
}

}  // namespace gpusched::admin
