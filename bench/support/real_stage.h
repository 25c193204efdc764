// A daemon on OpenCL with the operator's line to it, for work that really computes.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "ctl/admin_client.h"
#include "support/beside_update.h"
#include "support/daemon_process.h"
#include "support/real_work.h"

namespace gpusched::bench {

class RealStage {
 public:
  // Launches run whole until SetBound.
  static Result<std::unique_ptr<RealStage>> Raise();
  // Whether `status` says that no OpenCL platform is there.
  static bool LacksPlatform(const Status& status);

  // The daemon's preemption bound from now on, as in its configuration.
  Status SetBound(const std::string& bound);

  admin::AdminClient& admin() { return admin_; }
  test::DaemonProcess& daemon() { return *daemon_; }

 private:
  RealStage(std::unique_ptr<test::DaemonProcess> daemon, admin::AdminClient admin)
      : daemon_(std::move(daemon)), admin_(std::move(admin)) {}

  std::unique_ptr<test::DaemonProcess> daemon_;
  admin::AdminClient admin_;
};

// A daemon's own, where its configuration says nothing.
inline constexpr const char* kDefaultBound = "1ms";
inline constexpr std::chrono::nanoseconds kFramePeriod{16'666'667};
inline constexpr std::chrono::milliseconds kFrameTarget{20};
inline constexpr std::chrono::seconds kAnalysisTarget{5};

// The main job with kernels that compute, and frames beside analytics; both without arrivals.
BesideUpdateOptions RealMainJob(RealStage& stage, const RealWork& work);
BesideUpdateOptions RealGame(RealStage& stage, const RealWork& work);
// One frame in every period.
Arrivals FramesDue(Duration length);

}  // namespace gpusched::bench
