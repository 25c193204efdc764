// What the promises on OpenCL are played on: a daemon on this machine's OpenCL device, and workers
// that compute for a given time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "promises/promise.h"
#include "promises/stage.h"
#include "support/spin_kernel.h"

namespace gpusched::bench {

// "no OpenCL platform: ..." if that is what the status is about.
std::optional<std::string> LacksOpenCl(const Status&);

// A session with the spin kernel.
class SpinWorker {
 public:
  Job JobOf(const std::vector<Spin>& launches) const;
  Session& session() { return session_; }

 private:
  friend class OpenClStage;
  SpinWorker(Session session, Module module, Buffer buffer)
      : session_(std::move(session)), module_(std::move(module)), buffer_(std::move(buffer)) {}

  Session session_;
  Module module_;
  Buffer buffer_;
};

class OpenClStage {
 public:
  static Result<std::unique_ptr<OpenClStage>> Raise(std::vector<std::string> flags = {},
                                                    std::string yaml = "");

  Result<std::unique_ptr<SpinWorker>> Open(const std::string& name, const DeclaredShare& share);

  admin::AdminClient& admin() { return admin_; }
  test::DaemonProcess& daemon() { return *daemon_; }

 private:
  OpenClStage(std::unique_ptr<test::DaemonProcess> daemon, admin::AdminClient admin)
      : daemon_(std::move(daemon)), admin_(std::move(admin)) {}

  std::unique_ptr<test::DaemonProcess> daemon_;
  admin::AdminClient admin_;
};

}  // namespace gpusched::bench
