// What most promises are played on: a daemon of their own, the operator's line to it, and workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctl/admin_client.h"
#include "gpusched/client.h"
#include "support/daemon_process.h"
#include "support/endless.h"
#include "support/ledger_recorder.h"

namespace gpusched::bench {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// The daemon's steady clock is the host's, so both sides may compare times.
inline nanoseconds DaemonNow() { return std::chrono::steady_clock::now().time_since_epoch(); }
void WaitUntil(nanoseconds daemon_time);

inline double Milliseconds(nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

// Launches of one length.
struct Launches {
  Duration each{0};
  bool cuttable = true;
};

// A service on the virtual device: a connection, a session and the work module.
class Worker {
 public:
  // Jobs of the same launches, at least kLeastJob long, with enough of them outstanding that no
  // stall of the host leaves the session without work.
  Status KeepBusy(Launches launches);
  // Submits no more, and returns when what was outstanding has ended.
  void Rest();
  // The first thing that went wrong with the load.
  Status status() const;

  Session& session() { return session_; }
  std::uint64_t id() const { return session_.id(); }
  Kernel kernel(bool cuttable) const { return module_.kernel(cuttable ? "work" : "whole"); }

 private:
  friend class Stage;
  Worker(Session session, Module module)
      : session_(std::move(session)), module_(std::move(module)) {}

  Session session_;
  Module module_;
  std::optional<Template> template_;
  std::unique_ptr<Endless> load_;  // goes before the session it runs in
};

struct StageOptions {
  std::vector<std::string> flags = {};  // of gpuschedd, beside --device=virtual
  bool tcp = false;
};

class Stage {
 public:
  static Result<std::unique_ptr<Stage>> Raise(const StageOptions& options = {});

  Result<std::unique_ptr<Worker>> Open(const std::string& name, const DeclaredShare& share,
                                       const std::string& device = "0");
  Status SetPolicy(const std::string& kind, const admin::Parameters& parameters = {});

  admin::AdminClient& admin() { return admin_; }
  test::DaemonProcess& daemon() { return *daemon_; }

 private:
  Stage(std::unique_ptr<test::DaemonProcess> daemon, admin::AdminClient admin)
      : daemon_(std::move(daemon)), admin_(std::move(admin)) {}

  std::unique_ptr<test::DaemonProcess> daemon_;
  admin::AdminClient admin_;
};

// The ledger of device 0 up to `end`; an error if a slice is missing.
Result<Ledger> LedgerUpTo(LedgerRecorder& recorder, nanoseconds end);

}  // namespace gpusched::bench
