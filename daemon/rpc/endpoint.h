// Where a server listens, and the claim on a unix socket's path that outlives no process.
#pragma once

#include <string>
#include <string_view>

#include "gpusched/status.h"

namespace gpusched::rpc {

// "unix:/path" or "host:port".
struct Endpoint {
  std::string text;       // as written, and as gRPC takes it
  std::string path;       // of a unix socket; "" for TCP
  bool loopback = false;  // TCP on this machine only
  bool is_unix() const { return !path.empty(); }

  static Result<Endpoint> Parse(std::string_view text);
};

// The right to listen on a unix socket's path: an flock on a file beside it, which the kernel gives
// back when we die however we die. A socket without a living owner is stale and removed.
class SocketClaim {
 public:
  // SOCKET_IN_USE, naming the socket, where another process listens; makes the folder if it is
  // missing.
  static Result<SocketClaim> Take(const std::string& path);
  SocketClaim(SocketClaim&& other) noexcept;
  SocketClaim& operator=(SocketClaim&&) = delete;
  // Removes the socket; the lock file stays, as removing it would let two claims pass.
  ~SocketClaim();

  // Who may connect: `mode`, and `group` unless it is "".
  Status Open(unsigned mode, const std::string& group) const;

 private:
  SocketClaim(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_ = -1;
};

}  // namespace gpusched::rpc
