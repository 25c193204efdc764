// The one place where the library speaks gRPC.
#include "call.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "gpusched/reasons.h"
#include "gpusched/v1/session.grpc.pb.h"

namespace gpusched::internal {
namespace {

// A result piece is at most 1 MiB; a frame holds several messages.
constexpr int kReceiveLimit = 8 << 20;
// A local daemon answers a connect in well under a millisecond, a remote one within a round trip.
constexpr std::chrono::seconds kConnectLimit{5};
// Two processes that start together find each other within this; a lost daemon is asked for no
// more often than the last of them.
constexpr int kFirstBackoffMs = 50;
constexpr int kLastBackoffMs = 1'000;

gpr_timespec ToTimespec(Deadline deadline) {
  if (deadline == kNoDeadline) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const std::chrono::nanoseconds left = deadline - Clock::now();
  if (left <= std::chrono::nanoseconds::zero()) return gpr_inf_past(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(left.count(), GPR_TIMESPAN));
}

void* Tag(Call::Event event) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(event)); }

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& endpoint) {
  grpc::ChannelArguments arguments;
  // A connection of its own: nothing is shared with other users of gRPC in this process.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kReceiveLimit);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kFirstBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastBackoffMs);
  // A session cannot be retried, and a daemon is never behind a proxy or a service configuration:
  // what is off costs nothing per message.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
}

Status Unreachable(const std::string& endpoint) {
  return Status(StatusCode::kUnavailable, reason::kDaemonUnreachable,
                "no daemon answers at '" + endpoint +
                    "': start gpuschedd, or set GPUSCHED_ENDPOINT or ConnectOptions::endpoint to "
                    "where it listens");
}

}  // namespace

class Call::Rpc {
 public:
  Rpc(const std::shared_ptr<grpc::Channel>& channel, std::string endpoint)
      : endpoint_(std::move(endpoint)), stub_(v1::Sessions::NewStub(channel)) {
    // The headers leave with the first frame.
    context_.set_initial_metadata_corked(true);
    stream_ = stub_->PrepareAsyncAttach(&context_, &queue_);
    stream_->StartCall(nullptr);
  }
  ~Rpc() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) continue;
  }

  const std::string endpoint_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<v1::Sessions::Stub> stub_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::ClientFrame, v1::ServerFrame>> stream_;
  grpc::Status status_;
  grpc::Alarm wake_;
};

Call::Call(std::unique_ptr<Rpc> rpc) : rpc_(std::move(rpc)) {}
Call::~Call() = default;

void Call::StartRead(v1::ServerFrame* frame) { rpc_->stream_->Read(frame, Tag(Event::kRead)); }
void Call::StartWrite(const v1::ClientFrame& frame) {
  rpc_->stream_->Write(frame, Tag(Event::kWritten));
}
void Call::StartHalfClose() { rpc_->stream_->WritesDone(Tag(Event::kHalfClosed)); }
void Call::StartFinish() { rpc_->stream_->Finish(&rpc_->status_, Tag(Event::kFinished)); }
void Call::Wake() {
  rpc_->wake_.Set(&rpc_->queue_, gpr_now(GPR_CLOCK_MONOTONIC), Tag(Event::kTimedOut));
}
void Call::Cancel() { rpc_->context_.TryCancel(); }

Call::Happened Call::Next(Deadline deadline) {
  void* tag = nullptr;
  bool ok = false;
  switch (rpc_->queue_.AsyncNext(&tag, &ok, ToTimespec(deadline))) {
    case grpc::CompletionQueue::GOT_EVENT:
      return {static_cast<Event>(reinterpret_cast<std::uintptr_t>(tag)), ok};
    case grpc::CompletionQueue::TIMEOUT:
    case grpc::CompletionQueue::SHUTDOWN: break;
  }
  return {Event::kTimedOut, false};
}

Status Call::outcome() const {
  const grpc::Status& status = rpc_->status_;
  switch (status.error_code()) {
    case grpc::StatusCode::OK: return Status::Ok();
    case grpc::StatusCode::UNIMPLEMENTED:
      return Status(StatusCode::kFailedPrecondition, reason::kVersionMismatch,
                    "the endpoint serves no gpusched sessions: is it the admin socket, or a daemon "
                    "of another version?");
    case grpc::StatusCode::CANCELLED:
      return Status(StatusCode::kCancelled, reason::kSessionClosed, "the session was closed");
    default:
      return Status(StatusCode::kUnavailable, reason::kDaemonLost,
                    "the connection to the daemon at '" + rpc_->endpoint_ +
                        "' was lost: is gpuschedd running there? (GPUSCHED_ENDPOINT or "
                        "ConnectOptions::endpoint names another place.) Connect again and open a "
                        "new session. gRPC says: " +
                        status.error_message());
  }
}

struct Channel::Grpc {
  std::string endpoint;
  std::shared_ptr<grpc::Channel> channel;
};

Channel::Channel() = default;
Channel::~Channel() = default;

Result<std::shared_ptr<Channel>> Channel::Connect(const std::string& endpoint,
                                                  std::chrono::nanoseconds retry_for) {
  auto made = std::make_shared<Channel>();
  made->grpc_ = std::make_unique<Grpc>();
  made->grpc_->endpoint = endpoint;
  made->grpc_->channel = MakeChannel(endpoint);
  grpc::Channel& channel = *made->grpc_->channel;
  const bool once = retry_for <= std::chrono::nanoseconds::zero();
  const gpr_timespec deadline =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_nanos(
                       once ? std::chrono::nanoseconds(kConnectLimit).count() : retry_for.count(),
                       GPR_TIMESPAN));
  for (grpc_connectivity_state state = channel.GetState(true); state != GRPC_CHANNEL_READY;
       state = channel.GetState(true)) {
    if (once && state == GRPC_CHANNEL_TRANSIENT_FAILURE) return Unreachable(endpoint);
    if (!channel.WaitForStateChange(state, deadline)) return Unreachable(endpoint);
  }
  return made;
}

std::unique_ptr<Call> Channel::Attach() {
  return std::make_unique<Call>(std::make_unique<Call::Rpc>(grpc_->channel, grpc_->endpoint));
}

}  // namespace gpusched::internal
