// Starts the daemon, opens sessions on it and keeps them busy.
#include "promises/stage.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "support/virtual_work.h"

namespace gpusched::bench {
namespace {

// Together 0.3 s of work, more than a host stalls even when it is very busy.
constexpr Duration kLeastJob = milliseconds(20);
constexpr int kOutstanding = 16;
// A ledger's batch arrives within milliseconds; this is for a host that is very busy.
constexpr seconds kLedgerWithin{10};

}  // namespace

void WaitUntil(nanoseconds daemon_time) {
  std::this_thread::sleep_until(std::chrono::steady_clock::time_point(daemon_time));
}

Status Worker::KeepBusy(Launches launches) {
  const std::int64_t count = std::max<std::int64_t>(1, kLeastJob / launches.each);
  Result<Template> fixed = session_.RegisterTemplate(
      LaunchesOf(kernel(launches.cuttable), launches.each * count, launches.each));
  if (!fixed.ok()) return fixed.status();
  Rest();
  template_.emplace(*std::move(fixed));
  load_ = std::make_unique<Endless>(kOutstanding, [this] { return session_.Submit(*template_); });
  return Status::Ok();
}

void Worker::Rest() { load_.reset(); }

Status Worker::status() const { return load_ ? load_->status() : Status::Ok(); }

Result<std::unique_ptr<Stage>> Stage::Raise(const StageOptions& options) {
  test::DaemonOptions daemon_options;
  daemon_options.tcp = options.tcp;
  daemon_options.flags.insert(daemon_options.flags.end(), options.flags.begin(),
                              options.flags.end());
  Result<std::unique_ptr<test::DaemonProcess>> daemon =
      test::DaemonProcess::Start(std::move(daemon_options));
  if (!daemon.ok()) return daemon.status();
  Result<admin::AdminClient> admin = admin::AdminClient::Connect((*daemon)->admin_endpoint());
  if (!admin.ok()) return admin.status();
  return std::unique_ptr<Stage>(new Stage(*std::move(daemon), *std::move(admin)));
}

Result<std::unique_ptr<Worker>> Stage::Open(const std::string& name, const DeclaredShare& share,
                                            const std::string& device) {
  Result<Client> client = Client::Connect({.endpoint = daemon_->endpoint()});
  if (!client.ok()) return client.status();
  Result<Session> session = client->OpenSession({.name = name, .device = device, .share = share});
  if (!session.ok()) return session.status();
  Result<Module> module = session->LoadModule({.virtual_text = kWorkModule});
  if (!module.ok()) return module.status();
  return std::unique_ptr<Worker>(new Worker(*std::move(session), *std::move(module)));
}

Status Stage::SetPolicy(const std::string& kind, const admin::Parameters& parameters) {
  return admin_.SetPolicy({.kind = kind, .parameters = parameters}).status();
}

Result<Ledger> LedgerUpTo(LedgerRecorder& recorder, nanoseconds end) {
  if (!recorder.AwaitRecorded(0, end, kLedgerWithin)) {
    return Status(StatusCode::kDeadlineExceeded, "NO_LEDGER",
                  "the daemon's ledger showed no slice after the end of the run");
  }
  if (recorder.dropped() > 0) {
    return Status(StatusCode::kAborted, "LEDGER_INCOMPLETE",
                  "the daemon dropped " + std::to_string(recorder.dropped()) +
                      " slices because this machine reads too slowly");
  }
  return recorder.LedgerOf(0);
}

}  // namespace gpusched::bench
