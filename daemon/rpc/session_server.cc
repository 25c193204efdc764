// Builds the server and polls its completion queue.
#include <utility>  // Boost 1.74's asio forgets it under C++20.

#include "rpc/session_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "executor/clock.h"
#include "gpusched/reasons.h"
#include "rpc/attach_stream.h"
#include "rpc/cut_off.h"
#include "rpc/endpoint.h"
#include "rpc/health_service.h"
#include "rpc/unix_door.h"
#include "rpc/wire.h"

namespace gpusched::rpc {
namespace {

// A frame over our bound but under this gets a typed answer; beyond it gRPC itself refuses.
constexpr int kReceiveBytes = 4 * static_cast<int>(kFrameBytes);
// Anyone on the machine may use the device, within the configured caps, as with a device node.
constexpr unsigned kSessionSocketMode = 0666;
// All descriptors in one epoll set.
constexpr char kPollingEngine[] = "epoll1";
// Streams that are open at the end are cut off after it.
constexpr std::chrono::milliseconds kGoodbyeTime(200);

}  // namespace

void SessionServer::PreparePolling() { setenv("GRPC_POLL_STRATEGY", kPollingEngine, 1); }

class SessionServer::Parts {
 public:
  Status Start(const Options& options, control::SessionDirectory& directory);
  ~Parts();

  std::vector<std::string> bound;
  HealthService health{"gpusched.v1.Sessions"};
  std::unique_ptr<grpc::Server> server;

 private:
  void Poll();
  std::string Who(const std::string& peer) const;

  std::vector<std::unique_ptr<UnixDoor>> doors_;
  SessionService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  StreamHost host_;
  std::thread poller_;
};

Status SessionServer::Parts::Start(const Options& options, control::SessionDirectory& directory) {
  std::vector<Endpoint> endpoints;
  for (const std::string& text : options.endpoints) {
    Result<Endpoint> endpoint = Endpoint::Parse(text);
    if (!endpoint.ok()) return endpoint.status();
    if (!endpoint->is_unix() && !endpoint->loopback && !options.insecure) {
      return Status(StatusCode::kFailedPrecondition, reason::kInsecureEndpoint,
                    text +
                        " is open to the network and has no TLS; listen on 127.0.0.1 or a unix "
                        "socket, or set listen.insecure: true");
    }
    endpoints.push_back(*std::move(endpoint));
  }
  for (const Endpoint& endpoint : endpoints) {
    if (!endpoint.is_unix()) continue;
    auto door = UnixDoor::Make(endpoint.path, kSessionSocketMode, "");
    if (!door.ok()) return door.status();
    doors_.push_back(*std::move(door));
  }
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  std::vector<int> ports(endpoints.size(), 0);
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    if (endpoints[i].is_unix()) continue;
    builder.AddListeningPort(endpoints[i].text, grpc::InsecureServerCredentials(), &ports[i]);
  }
  // A port that another daemon has is an error, not something to share.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(kReceiveBytes);
  builder.RegisterService(&service_);
  builder.RegisterService(&health);
  queue_ = builder.AddCompletionQueue();
  server = builder.BuildAndStart();
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const std::string& text = endpoints[i].text;
    if (endpoints[i].is_unix()) {
      bound.push_back(text);
    } else if (server != nullptr && ports[i] != 0) {
      bound.push_back(text.substr(0, text.rfind(':') + 1) + std::to_string(ports[i]));
    } else {
      return Status(StatusCode::kAlreadyExists, reason::kSocketInUse,
                    "cannot listen on " + text +
                        "; is another daemon there, or the address not this machine's?");
    }
  }
  host_.service = &service_;
  host_.queue = queue_.get();
  host_.directory = &directory;
  AttachStream::Accept(host_);
  host_.who = [this](const std::string& peer) { return Who(peer); };
  poller_ = std::thread([this] { Poll(); });
  for (const auto& door : doors_) {
    door->Open([this](int fd) { grpc::AddInsecureChannelFromFd(server.get(), fd); });
  }
  return Status::Ok();
}

std::string SessionServer::Parts::Who(const std::string& peer) const {
  for (const auto& door : doors_) {
    if (std::string who = door->Who(peer); !who.empty()) return who;
  }
  return peer;  // an address
}

void SessionServer::Parts::Poll() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    const auto& taken = *static_cast<AttachStream::Tag*>(tag);
    taken.stream->Proceed(taken.step, ok);
  }
}

SessionServer::Parts::~Parts() {
  health.Stop();
  for (const auto& door : doors_) door->Close();
  const CutOff cut_off(bound, kGoodbyeTime);
  if (server != nullptr) server->Shutdown(executor::WallClock() + kGoodbyeTime);
  if (queue_ == nullptr) return;
  if (poller_.joinable()) {
    // Nothing may be put on a queue that was shut down, so the streams go first: all calls are
    // over.
    for (int left = host_.streams; left != 0; left = host_.streams) host_.streams.wait(left);
  }
  queue_->Shutdown();
  if (poller_.joinable()) {
    poller_.join();
  } else {
    Poll();
  }
}

Result<std::unique_ptr<SessionServer>> SessionServer::Start(const Options& options,
                                                            control::SessionDirectory& directory) {
  auto parts = std::make_unique<Parts>();
  if (Status started = parts->Start(options, directory); !started.ok()) return started;
  return std::unique_ptr<SessionServer>(new SessionServer(std::move(parts)));
}

SessionServer::SessionServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SessionServer::~SessionServer() = default;

const std::vector<std::string>& SessionServer::endpoints() const { return parts_->bound; }

void SessionServer::StopServing() { parts_->health.StopServing(); }

}  // namespace gpusched::rpc
