// The main job: requests with a latency target beside an endless model update, on one device.
//
// What it measures is read from outside: latencies by the service that waits, device time by the
// operator's view of the accounts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctl/admin_client.h"
#include "gpusched/client.h"
#include "support/arrivals.h"
#include "support/endless.h"
#include "support/open_loop.h"
#include "support/percentile.h"
#include "support/work.h"

namespace gpusched::bench {

struct BesideUpdateOptions {
  std::string endpoint = {};
  std::string device = "0";
  // The requests of the whole run, counted from its start; empty: the update runs alone.
  Arrivals requests = {};
  Duration target = std::chrono::milliseconds(100);
  // A request is cut into launches of at most this.
  Duration request_launch = std::chrono::milliseconds(1);
  // Requests take turns in so many queues: one that is late anyway then holds up none behind it.
  std::uint32_t request_queues = 1;
  DeclaredShare request_share{.weight = 70, .priority = 10};  // latency_target is set from `target`
  // Without it the requests run alone.
  bool update = true;
  Duration update_launch = std::chrono::milliseconds(50);
  bool update_cuttable = true;
  int update_outstanding = 2;
  DeclaredShare update_share{.weight = 30};

  // What the two submit; empty: launches on the virtual device, as said above.
  MakeWork request_work = {}, update_work = {};
  bool skip_late_requests = false;
  // As tables call them.
  std::string request_name = "requests", update_name = "update";
};

// Of one service in one window. What could not be measured is empty, never zero.
struct ServiceFigures {
  std::string service;
  std::size_t jobs = 0;                  // due in the window; of the update: done in it
  Measured p50, p99;                     // requests: from when they were due; update: from Submit
  std::vector<Measured> latencies = {};  // of the requests
  Duration longest{0};                   // of those answered
  std::optional<double> on_time;         // part of the jobs answered within the target
  std::optional<double> asked;           // of the device's time
  double got = 0;
  std::uint64_t slices = 0, preempted = 0;
  // Its kernel time (launch gaps, chunk and switch costs not counted) over the rest: the window
  // minus what the others were charged.
  std::optional<double> rest_used;
};

struct WindowFigures {
  std::optional<ServiceFigures> requests, update;
  double behind_ms = 0;  // how late the generator itself was at worst
};

class BesideUpdate {
 public:
  // Opens the sessions and prepares what they submit.
  static Result<std::unique_ptr<BesideUpdate>> Open(const BesideUpdateOptions& options);
  // Starts both loads; requests are due from `start` on.
  Status Begin(SteadyTime start);
  // Both at once.
  static Result<std::unique_ptr<BesideUpdate>> Start(const BesideUpdateOptions& options,
                                                     SteadyTime start);
  ~BesideUpdate();

  // Requests that are due from now on count.
  Status BeginWindow(admin::AdminClient& admin);
  // Reads the accounts, cancels the requests' backlog (missed) and gives the window's figures.
  Result<WindowFigures> EndWindow(admin::AdminClient& admin);

  // Ends both loads and compares what they computed.
  struct Results {
    Work::Checked requests, update;
  };
  Result<Results> Finish();

  // Requests due since BeginWindow, and those of them answered on time so far.
  struct Progress {
    std::size_t due = 0, on_time = 0, update_jobs = 0;
  };
  Progress progress() const;

 private:
  struct Service;
  struct Accounts;
  BesideUpdate() = default;
  static Result<std::unique_ptr<Service>> OpenService(const BesideUpdateOptions& options,
                                                      const std::string& name, DeclaredShare share,
                                                      const MakeWork& make_work);
  Result<Accounts> Read(admin::AdminClient& admin) const;
  ServiceFigures RequestFigures(const Accounts& end, const std::vector<Request>& requests) const;
  ServiceFigures UpdateFigures(const Accounts& end) const;

  BesideUpdateOptions options_;
  // The loads go before the services they run in.
  std::unique_ptr<Service> request_service_, update_service_;
  std::unique_ptr<Accounts> begin_;
  std::unique_ptr<OpenLoop> requests_;
  std::unique_ptr<Endless> update_;
};

struct PolicyChoice {
  std::string label;
  std::string kind;
  admin::Parameters parameters;
};
// The three built-in policies with their defaults.
std::vector<PolicyChoice> BuiltInPolicies();

struct Timetable {
  SteadyTime start;                                   // of the first policy
  Duration dropped = std::chrono::seconds(1);         // after each swap; nothing in it counts
  Duration length = std::chrono::seconds(20);         // then measured
  Duration each() const { return dropped + length; }  // from one swap to the next
};
// Swaps the policy at each turn of the timetable, while all `jobs` run on, and gives the windows of
// each policy, a job each. `tick` is called about once a second meanwhile.
Result<std::vector<std::vector<WindowFigures>>> UnderEachPolicy(
    admin::AdminClient& admin, const std::vector<BesideUpdate*>& jobs,
    const std::vector<PolicyChoice>& policies, const Timetable& timetable,
    const std::function<void(const PolicyChoice&, Duration into)>& tick);

}  // namespace gpusched::bench
