// The bound is set where an operator would: in the configuration file, which is then read again.
#include "support/real_stage.h"

#include <fstream>

#include "support/main_job.h"

namespace gpusched::bench {
namespace {

std::string Configuration(const std::string& bound) {
  return "version: 1\ndevice: {kind: opencl, preemption_bound: " + bound + "}\n";
}

// The greatest bound there is: launches of up to half of it run whole.
constexpr const char* kWhole = "1s";

}  // namespace

Result<std::unique_ptr<RealStage>> RealStage::Raise() {
  test::DaemonOptions options;
  options.yaml = Configuration(kWhole);
  options.flags = {};
  Result<std::unique_ptr<test::DaemonProcess>> daemon = test::DaemonProcess::Start(options);
  if (!daemon.ok()) return daemon.status();
  Result<admin::AdminClient> admin = admin::AdminClient::Connect((*daemon)->admin_endpoint());
  if (!admin.ok()) return admin.status();
  return std::unique_ptr<RealStage>(new RealStage(*std::move(daemon), *std::move(admin)));
}

bool RealStage::LacksPlatform(const Status& status) {
  // The daemon itself says whether it is the platform that is missing.
  return status.message().find("pocl-opencl-icd") != std::string::npos;
}

Status RealStage::SetBound(const std::string& bound) {
  std::ofstream(daemon_->config_path()) << Configuration(bound);
  return admin_.Reload().status();
}

BesideUpdateOptions RealMainJob(RealStage& stage, const RealWork& work) {
  return {.endpoint = stage.daemon().endpoint(),
          .target = kMainTarget,
          .request_work = work.requests,
          .update_work = work.update};
}

BesideUpdateOptions RealGame(RealStage& stage, const RealWork& work) {
  return {.endpoint = stage.daemon().endpoint(),
          .target = kFrameTarget,
          .update_share = {.weight = 30, .latency_target = kAnalysisTarget},
          .request_work = work.requests,
          .update_work = work.update,
          .skip_late_requests = true,
          .request_name = "frames",
          .update_name = "analytics"};
}

Arrivals FramesDue(Duration length) {
  Arrivals arrivals;
  for (Duration at{0}; at < length; at += kFramePeriod) arrivals.push_back({.at = at, .work = {}});
  return arrivals;
}

}  // namespace gpusched::bench
