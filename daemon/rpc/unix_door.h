// A unix socket that lets connections in and knows who is behind each.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "gpusched/status.h"
#include "rpc/endpoint.h"

namespace gpusched::rpc {

// We accept ourselves, since gRPC does not tell a unix peer's credentials, and they are what an
// operator wants to read beside a policy change or a session. gRPC takes each connection from us
// and calls its peer "fd:N"; Who turns that into a person.
class UnixDoor {
 public:
  // Binds and listens; nobody is let in before Open. SOCKET_IN_USE as SocketClaim. `mode` says who
  // may connect, `group` (unless "") is the socket's group.
  static Result<std::unique_ptr<UnixDoor>> Make(const std::string& path, unsigned mode,
                                                const std::string& group);
  // Closes, and removes the socket.
  ~UnixDoor();
  UnixDoor(const UnixDoor&) = delete;
  UnixDoor& operator=(const UnixDoor&) = delete;

  // From now on `enter` is given every connection, on the door's own thread.
  void Open(std::function<void(int fd)> enter);
  // Nobody is let in any more.
  void Close();

  // "pid 12 uid 0" for a peer that came through this door; "" for any other.
  std::string Who(const std::string& peer) const;

 private:
  UnixDoor(SocketClaim claim, int listener, int stop)
      : claim_(std::move(claim)), listener_(listener), stop_(stop) {}
  void Run();
  void LetIn();

  SocketClaim claim_;
  const int listener_;
  const int stop_;
  std::function<void(int)> enter_;
  // Between the door's thread and those that ask. A number is overwritten when it is used again.
  mutable std::mutex mutex_;
  std::unordered_map<int, std::string> peers_;
  std::thread thread_;
};

}  // namespace gpusched::rpc
