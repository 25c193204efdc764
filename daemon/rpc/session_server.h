// The sessions' gRPC server: its sockets, its completion queue and the one thread that polls it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/session_directory.h"
#include "gpusched/status.h"

namespace gpusched::rpc {

class SessionServer {
 public:
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
