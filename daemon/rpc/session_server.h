// The sessions' gRPC server: its sockets, its completion queue and the one thread that polls it.
//
// gRPC watches all descriptors of a process in one epoll set, and whichever thread polls takes
// every event and hands it to the thread that it is for: two wake-ups more for each message, twice
// the round trip. So exactly one thread of the daemon polls, this server's. The other services
// (admin, health, reflection) are synchronous ones on servers that also have an asynchronous queue;
// by gRPC's rule for such servers their threads wait for work without polling, and the poller
// brings it to them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/session_directory.h"
#include "gpusched/status.h"

namespace gpusched::rpc {

class SessionServer {
 public:
  // Fixes the polling engine for which the above holds. Before gRPC is used for the first time.
  static void PreparePolling();

  struct Options {
    std::vector<std::string> endpoints;
    bool insecure = false;  // TCP beyond this machine without TLS
  };
  // Listens on all endpoints or on none. The directory outlives it.
  static Result<std::unique_ptr<SessionServer>> Start(const Options& options,
                                                      control::SessionDirectory& directory);
  // Ends the streams that are left; sessions must be closed before.
  ~SessionServer();

  // As bound: a port 0 is a number by now.
  const std::vector<std::string>& endpoints() const;
  // Health says NOT_SERVING from now on: load balancers look elsewhere while sessions drain.
  void StopServing();

 private:
  class Parts;
  explicit SessionServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace gpusched::rpc
