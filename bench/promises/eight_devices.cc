// Eight devices named in permuted order: nobody's work, count or memory lands on another's.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "promises/stage.h"
#include "promises/table.h"
#include "support/virtual_work.h"

namespace gpusched::bench {
namespace {

constexpr int kDevices = 8;
constexpr std::array<int, kDevices> kOrder = {5, 2, 7, 0, 3, 6, 1, 4};
constexpr std::uint64_t kMiB = 1 << 20;
constexpr microseconds kLaunch{500};
constexpr seconds kWithin{10};

// On device d: 10 (d + 1) launches and d + 1 MiB, so that no two look alike.
struct Placed {
  int device = 0;
  std::unique_ptr<Worker> worker;
  std::optional<Buffer> buffer;
  std::optional<Submission> job;
  JobReport report;
};

Result<Placed> Place(Stage& stage, const admin::Device& device) {
  Placed placed;
  placed.device = device.index;
  Result<std::unique_ptr<Worker>> worker = stage.Open("on " + device.uuid, {}, device.uuid);
  if (!worker.ok()) return worker.status();
  placed.worker = *std::move(worker);
  const auto size = static_cast<std::uint64_t>(device.index + 1);
  Result<Buffer> buffer = placed.worker->session().Allocate(size * kMiB);
  if (!buffer.ok()) return buffer.status();
  placed.buffer.emplace(*std::move(buffer));
  Result<Submission> job = placed.worker->session().Submit(LaunchesOf(
      placed.worker->kernel(true), kLaunch * 10 * static_cast<std::int64_t>(size), kLaunch));
  if (!job.ok()) return job.status();
  placed.job.emplace(*std::move(job));
  return placed;
}

// Until the ledger has the last slice of each, too.
Status AwaitAll(LedgerRecorder& recorder, std::vector<Placed>& places) {
  for (Placed& placed : places) {
    const Result<JobReport> report = placed.job->Wait();
    if (!report.ok()) return report.status();
    placed.report = *report;
    if (!recorder.AwaitRecorded(placed.device, report->ended - nanoseconds(1), kWithin)) {
      return Status(
          StatusCode::kDeadlineExceeded, "NO_LEDGER",
          "the ledger shows no end of the job on device " + std::to_string(placed.device));
    }
  }
  return Status::Ok();
}

// What is not as asked, one line each.
class Complaints {
 public:
  void Expect(bool fact, const std::string& what) {
    if (fact) return;
    ++count_;
    text_ += (text_.empty() ? "" : "\n") + what;
  }
  double count() const { return count_; }
  const std::string& text() const { return text_; }

 private:
  int count_ = 0;
  std::string text_;
};

Status CheckPlaces(Stage& stage, const LedgerRecorder& recorder, const std::vector<Placed>& places,
                   Complaints& complaints) {
  const Result<std::vector<admin::Device>> devices = stage.admin().Devices();
  if (!devices.ok()) return devices.status();
  const Result<std::vector<admin::Session>> sessions = stage.admin().Sessions();
  if (!sessions.ok()) return sessions.status();
  const std::vector<admin::Slice> slices = recorder.Slices();
  for (const Placed& placed : places) {
    const admin::Device& device = (*devices)[static_cast<std::size_t>(placed.device)];
    const std::string name = "session on " + device.uuid;
    const DeviceInfo& seen = placed.worker->session().device();
    complaints.Expect(seen.uuid == device.uuid && seen.index == placed.device,
                      name + " was told it is on " + seen.uuid);
    complaints.Expect(device.sessions == 1, device.uuid + " counts other sessions");
    complaints.Expect(
        device.memory_used_bytes == placed.buffer->bytes() ||
            device.memory_used_bytes == placed.worker->session().memory(),
        device.uuid + " counts other memory: " + std::to_string(device.memory_used_bytes));
    complaints.Expect(device.charged == placed.report.charged,
                      device.uuid + " was charged for something else than its session");
    for (const admin::Session& session : *sessions) {
      if (session.id != placed.worker->id()) continue;
      complaints.Expect(session.device == device.uuid, name + " is shown on " + session.device);
    }
    Duration on_ledger{0};
    for (const admin::Slice& slice : slices) {
      if (slice.session != placed.worker->id()) continue;
      complaints.Expect(slice.device == placed.device,
                        name + " had a slice on device " + std::to_string(slice.device));
      on_ledger += slice.charged;
    }
    complaints.Expect(on_ledger == placed.report.charged, name + ": ledger and reports differ");
  }
  return Status::Ok();
}

// Opens a session that leaves the choice to the daemon.
Result<int> AutoPlace(Stage& stage, std::uint64_t memory) {
  const Result<Client> client = Client::Connect({.endpoint = stage.daemon().endpoint()});
  if (!client.ok()) return client.status();
  const Result<Session> session =
      client->OpenSession({.name = "anywhere", .device = "auto", .memory = memory});
  if (!session.ok()) return session.status();
  return session->device().index;
}

// Until so many sessions are at work by the operator's view.
Status AwaitBusy(Stage& stage, std::ptrdiff_t count) {
  const nanoseconds deadline = DaemonNow() + kWithin;
  while (DaemonNow() < deadline) {
    const Result<std::vector<admin::Session>> sessions = stage.admin().Sessions();
    if (!sessions.ok()) return sessions.status();
    const auto busy = [](const admin::Session& session) { return session.jobs_running > 0; };
    if (std::count_if(sessions->begin(), sessions->end(), busy) == count) return Status::Ok();
    WaitUntil(DaemonNow() + milliseconds(1));
  }
  return Status(StatusCode::kDeadlineExceeded, "NOT_BUSY", "not all sessions came to work");
}

// All but `idle` are kept busy, `idle` holds most of its memory: who needs little goes there, who
// needs more than it has left does not.
Status CheckAuto(Stage& stage, std::vector<Placed>& places, int idle, Complaints& complaints) {
  for (Placed& placed : places) {
    if (placed.device == idle) continue;
    if (Status status = placed.worker->KeepBusy({.each = kLaunch}); !status.ok()) return status;
  }
  if (Status status = AwaitBusy(stage, kDevices - 1); !status.ok()) return status;
  const Result<std::vector<admin::Device>> devices = stage.admin().Devices();
  if (!devices.ok()) return devices.status();
  const std::uint64_t memory = (*devices)[static_cast<std::size_t>(idle)].memory_bytes;

  const Result<int> small = AutoPlace(stage, kMiB);
  if (!small.ok()) return small.status();
  complaints.Expect(*small == idle, "auto took device " + std::to_string(*small) + ", not " +
                                        std::to_string(idle) + ", the only idle one");
  const Result<Client> client = Client::Connect({.endpoint = stage.daemon().endpoint()});
  if (!client.ok()) return client.status();
  const Result<Session> hoard =
      client->OpenSession({.name = "hoard", .device = std::to_string(idle), .memory = memory / 2});
  if (!hoard.ok()) return hoard.status();
  const Result<int> large = AutoPlace(stage, memory / 2);
  if (!large.ok()) return large.status();
  complaints.Expect(*large != idle, "auto took the idle device, which has no room");
  return Status::Ok();
}

}  // namespace

Result<Measurement> MeasureEightDevices(Length) {
  Result<std::unique_ptr<Stage>> stage =
      Stage::Raise({.flags = {"--devices=" + std::to_string(kDevices)}});
  if (!stage.ok()) return stage.status();
  Result<std::unique_ptr<LedgerRecorder>> recorder = LedgerRecorder::Start((*stage)->admin());
  if (!recorder.ok()) return recorder.status();
  const Result<std::vector<admin::Device>> devices = (*stage)->admin().Devices();
  if (!devices.ok()) return devices.status();
  if (devices->size() != kDevices) {
    return Status(StatusCode::kInternal, "WRONG_COUNT",
                  "the daemon lists " + std::to_string(devices->size()) + " devices");
  }
  std::vector<Placed> places;
  for (const int device : kOrder) {
    Result<Placed> placed = Place(**stage, (*devices)[static_cast<std::size_t>(device)]);
    if (!placed.ok()) return placed.status();
    places.push_back(*std::move(placed));
  }
  if (Status status = AwaitAll(**recorder, places); !status.ok()) return status;
  Complaints placing, choosing;
  if (Status status = CheckPlaces(**stage, **recorder, places, placing); !status.ok()) {
    return status;
  }
  if (Status status = CheckAuto(**stage, places, 3, choosing); !status.ok()) return status;
  return Measurement{
      .figures = {AtMost("places, counts and reports of another device", placing.count(), "", 0),
                  AtMost("auto: choices that are not the least loaded with room", choosing.count(),
                         "", 0)},
      .not_run = {},
      .remark = placing.text() + choosing.text()};
}

}  // namespace gpusched::bench
