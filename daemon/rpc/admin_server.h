// The operators' gRPC server, on a unix socket of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/policy_control.h"
#include "control/session_directory.h"
#include "gpusched/status.h"

namespace gpusched::rpc {

// What reading the configuration again came to.
struct ReloadReport {
  bool changed = false;
  std::vector<std::string> needs_restart;
  Status status;
  struct Fault {
    std::string field, message;
    int line = 0, column = 0;
  };
  std::vector<Fault> faults;
};

class AdminServer {
 public:
  struct Options {
    std::string endpoint;  // unix:/path only
    std::string group;     // may use it too; "": the owner alone
    std::function<ReloadReport(const std::string& who)> reload;
  };
  // The others outlive it.
  static Result<std::unique_ptr<AdminServer>> Start(const Options& options,
                                                    control::PolicyControl& policy,
                                                    control::SessionDirectory& directory);
  ~AdminServer();

 private:
  class Parts;
  explicit AdminServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace gpusched::rpc
