// Connecting: where the daemon is, and one connection per client.
#include "gpusched/client.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "call.h"
#include "stream.h"

namespace gpusched {
namespace {

constexpr char kDefaultEndpoint[] = "unix:/run/gpusched/gpusched.sock";

std::string Resolve(const std::string& endpoint) {
  if (!endpoint.empty()) return endpoint;
  const char* from_environment = std::getenv("GPUSCHED_ENDPOINT");
  if (from_environment != nullptr && *from_environment != '\0') return from_environment;
  return kDefaultEndpoint;
}

}  // namespace

class Client::Connection {
 public:
  Connection(std::string at, std::shared_ptr<internal::Channel> over)
      : endpoint(std::move(at)), channel(std::move(over)) {}

  const pid_t pid = getpid();
  const std::string endpoint;
  const std::shared_ptr<internal::Channel> channel;
};

Client::Client(std::shared_ptr<const Connection> connection) : connection_(std::move(connection)) {}

Result<Client> Client::Connect(const ConnectOptions& options) {
  const std::string endpoint = Resolve(options.endpoint);
  Result<std::shared_ptr<internal::Channel>> channel =
      internal::Channel::Connect(endpoint, options.retry_for);
  if (!channel) return channel.status();
  // A forked child leaves gRPC's objects alone: their threads exist in the parent only.
  return Client(std::shared_ptr<const Connection>(new Connection(endpoint, *std::move(channel)),
                                                  [](const Connection* last) {
                                                    if (last->pid == getpid()) delete last;
                                                  }));
}

Result<Session> Client::OpenSession(const SessionOptions& options) const {
  if (!connection_) {
    return Status(StatusCode::kFailedPrecondition, reason::kMovedFrom,
                  "the client was moved from: use the one it was moved to");
  }
  if (connection_->pid != getpid()) {
    return Status(StatusCode::kFailedPrecondition, reason::kForked,
                  "the connection belongs to the process that made it, not to its fork: connect "
                  "again in the child");
  }
  Result<std::shared_ptr<internal::Stream>> stream =
      internal::Stream::Open(connection_->channel->Attach(), options);
  if (!stream) return stream.status();
  return Session(*std::move(stream));
}

const std::string& Client::endpoint() const {
  static const std::string kNone;
  return connection_ ? connection_->endpoint : kNone;
}

}  // namespace gpusched
