// The client library: connect to a daemon, open sessions, submit jobs and wait for their reports.
//
//   auto client  = gpusched::Client::Connect();
//   auto session = client->OpenSession({.name = "recsys", .share = {.latency_target = 100ms}});
//   auto module  = session->LoadModule({.source = kSource});
//   auto x       = session->Allocate(bytes);
//   auto job     = session->Submit(Job().Write(*x, host).Launch(module->kernel("scale"), grid,
//   block,
//                                                               *x, 2.0f).Read(*x, out));
//   auto report  = job->Wait();
//
// Everything is safe to use from several threads at once. What a call has sent leaves without
// another call. No call starts a thread, except the first Submit with an on_done callback of a
// session, and a call that would else be held up, for longer than a millisecond beyond its deadline
// or its answer, by a daemon that does not take what other threads have sent. Handles survive a
// lost daemon: every call then answers UNAVAILABLE (DAEMON_LOST). After a fork the child gets
// FAILED_PRECONDITION (FORKED) and disturbs nothing. A handle that was moved from answers
// FAILED_PRECONDITION (MOVED_FROM).
//
// Not here yet: staging areas that copy nothing (Staging, Map), TLS.
#pragma once

#include <memory>
#include <string>

#include "gpusched/export.h"
#include "gpusched/job.h"
#include "gpusched/memory.h"
#include "gpusched/module.h"
#include "gpusched/reasons.h"
#include "gpusched/session.h"
#include "gpusched/status.h"
#include "gpusched/submission.h"

namespace gpusched {

struct ConnectOptions {
  // "unix:/path" or "host:port". Empty: the environment's GPUSCHED_ENDPOINT, else
  // "unix:/run/gpusched/gpusched.sock".
  std::string endpoint = {};
  // How long to try again where no daemon answers, as while both start. Zero: one try.
  Duration retry_for = std::chrono::seconds(2);
};

// A connection to one daemon. Copies name the same connection; sessions keep it open.
class GPUSCHED_EXPORT Client {
 public:
  // UNAVAILABLE (DAEMON_UNREACHABLE) where nobody answers.
  static Result<Client> Connect(const ConnectOptions& options = {});

  // Waits for the daemon's welcome, so that a refusal (UNKNOWN_DEVICE, BAD_SHARE,
  // MIN_OVERSUBSCRIBED, ABOVE_CONFIGURED_CAP, QUOTA_EXCEEDED, VERSION_MISMATCH ...) is this call's.
  Result<Session> OpenSession(const SessionOptions& options = {}) const;

  const std::string& endpoint() const;

 private:
  class Connection;
  explicit Client(std::shared_ptr<const Connection> connection);

  std::shared_ptr<const Connection> connection_;
};

}  // namespace gpusched
