// Clients killed at four points of their lives, beside a service whose latency must not show it.
//
// Every other client closes its session itself at the same point: that is the run without kills.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "promises/child.h"
#include "promises/stage.h"
#include "promises/table.h"
#include "promises/victim.h"
#include "support/open_loop.h"
#include "support/random.h"
#include "support/virtual_work.h"

namespace gpusched::bench {
namespace {

constexpr const char* kPoints[] = {"running", "waiting", "writing", "idle"};
constexpr int kTimes = 10;
constexpr double kGoneWithinMs = 100, kOthersAtMost = 1.1;
// The others: a service with a request of 1 ms every 5 ms.
constexpr milliseconds kPeriod{5}, kRequest{1}, kTarget{20};
constexpr milliseconds kVictimWithin{10'000};
// From a victim's end on, in which it may still disturb the others.
constexpr milliseconds kAftermath{200};
constexpr milliseconds kLookEvery{2};
constexpr std::uint64_t kSeed = 11;

Status TooLate(const std::string& what) {
  return Status(StatusCode::kDeadlineExceeded, "TOO_LATE", what);
}

// Looks at the operator's view until `condition` holds for it.
template <typename Condition>
Status Await(Stage& stage, const std::string& what, Condition condition) {
  const nanoseconds deadline = DaemonNow() + kVictimWithin;
  while (DaemonNow() < deadline) {
    const Result<std::vector<admin::Session>> sessions = stage.admin().Sessions();
    if (!sessions.ok()) return sessions.status();
    if (condition(*sessions)) return Status::Ok();
    WaitUntil(DaemonNow() + kLookEvery);
  }
  return TooLate(what);
}

const admin::Session* Find(const std::vector<admin::Session>& sessions, std::uint64_t id) {
  const auto found = std::find_if(sessions.begin(), sessions.end(),
                                  [id](const admin::Session& session) { return session.id == id; });
  return found == sessions.end() ? nullptr : &*found;
}

Result<std::uint64_t> MemoryUsed(Stage& stage) {
  const Result<std::vector<admin::Device>> devices = stage.admin().Devices();
  if (!devices.ok()) return devices.status();
  return devices->front().memory_used_bytes;
}

struct Victim {
  std::string point;
  bool killed = false;
  std::unique_ptr<Child> child;
};

// All are up before the first comes to its point: what starting a program costs the host disturbs
// nobody then.
Result<std::vector<Victim>> StartVictims(Stage& stage, int times) {
  std::vector<Victim> victims;
  for (int i = 0; i < times; ++i) {
    for (const char* point : kPoints) {
      for (const bool killed : {true, false}) {
        Result<std::unique_ptr<Child>> child =
            Child::Start({ProgramPath("gpusched-victim"), stage.daemon().endpoint(), point});
        if (!child.ok()) return child.status();
        // One after the other: all at once they would keep each other from connecting.
        if (Result<std::string> up = (*child)->ReadLine(kVictimWithin); !up.ok()) {
          return up.status();
        }
        victims.push_back({.point = point, .killed = killed, .child = *std::move(child)});
      }
    }
  }
  return victims;
}

Result<std::string> Order(const Victim& victim, const std::string& what) {
  if (Status status = victim.child->WriteLine(what); !status.ok()) return status;
  return victim.child->ReadLine(kVictimWithin);
}

// Brings a victim to its point, makes sure by the operator's view that it is there, and gives its
// session.
Result<std::uint64_t> BringToPoint(Stage& stage, const Victim& victim, Random& random) {
  const Result<std::string> id = Order(victim, "open");
  if (!id.ok()) return id.status();
  const std::uint64_t session_id = std::stoull(*id);
  // One that is paused keeps waiting.
  if (victim.point == "waiting") {
    if (Status status = stage.admin().Pause(*id).status(); !status.ok()) return status;
  }
  if (Result<std::string> there = Order(victim, "go"); !there.ok()) return there.status();
  const bool running = victim.point == "running";
  Status status;
  if (running || victim.point == "waiting") {
    status = Await(stage, "a victim's job never was " + victim.point, [&](const auto& sessions) {
      const admin::Session* session = Find(sessions, session_id);
      return session != nullptr && (running ? session->jobs_running : session->jobs_waiting) > 0;
    });
  } else if (victim.point == "writing") {
    // Anywhere in a write, which takes milliseconds.
    WaitUntil(DaemonNow() + microseconds(random.Below(10'000)));
  }
  if (!status.ok()) return status;
  return session_id;
}

// One victim's end and what comes after.
struct Trial {
  std::uint64_t session = 0;
  SteadyTime begin, end;  // in which the others are looked at
  nanoseconds gone{0};    // session and memory
};

Result<Trial> Play(Stage& stage, const Victim& victim, Random& random) {
  const Result<std::uint64_t> memory_before = MemoryUsed(stage);
  if (!memory_before.ok()) return memory_before.status();
  const Result<std::uint64_t> session = BringToPoint(stage, victim, random);
  if (!session.ok()) return session.status();
  Trial trial;
  trial.session = *session;
  trial.begin = std::chrono::steady_clock::now();
  if (victim.killed) {
    victim.child->Kill();
  } else if (Status status = victim.child->WriteLine("close"); !status.ok()) {
    return status;
  }
  Status status =
      Await(stage, "the session of a " + victim.point + " victim stays", [&](const auto& sessions) {
        if (Find(sessions, *session) != nullptr) return false;
        const Result<std::uint64_t> memory = MemoryUsed(stage);
        return memory.ok() && *memory <= *memory_before;
      });
  if (!status.ok()) return status;
  trial.gone = DaemonNow();
  victim.child->Wait();
  trial.end = trial.begin + kAftermath;
  WaitUntil(trial.end.time_since_epoch());
  return trial;
}

// From when its last command left the device (or it was killed, if that was later).
nanoseconds Lingered(const Trial& trial, const std::vector<admin::Slice>& slices) {
  nanoseconds last = trial.begin.time_since_epoch();
  for (const admin::Slice& slice : slices) {
    if (slice.session == trial.session) last = std::max(last, slice.ended);
  }
  return trial.gone - last;
}

Measured P99(const OpenLoop& load, const std::vector<Trial>& trials) {
  std::vector<Measured> latencies;
  for (const Trial& trial : trials) {
    const std::vector<Measured> some = Latencies(load.Between(trial.begin, trial.end));
    latencies.insert(latencies.end(), some.begin(), some.end());
  }
  return Percentile(std::move(latencies), 99);
}

}  // namespace

Result<Measurement> MeasureClientKilled(Length length) {
  const int times = length == Length::kFull ? 10 * kTimes : kTimes;
  Result<std::unique_ptr<Stage>> stage = Stage::Raise({.flags = {"--policy=preemptive_priority"}});
  if (!stage.ok()) return stage.status();
  Result<std::unique_ptr<Worker>> others =
      (*stage)->Open("others", {.priority = 10, .latency_target = kTarget});
  if (!others.ok()) return others.status();
  const Result<Template> request = (*others)->session().RegisterTemplate(
      LaunchesOf((*others)->kernel(true), kRequest, kRequest));
  if (!request.ok()) return request.status();
  Result<std::unique_ptr<LedgerRecorder>> recorder = LedgerRecorder::Start((*stage)->admin());
  if (!recorder.ok()) return recorder.status();
  const Result<std::vector<Victim>> victims = StartVictims(**stage, times);
  if (!victims.ok()) return victims.status();
  // More than the trials take; what is left is dropped.
  const Arrivals arrivals =
      EveryAtRandomPhase(kPeriod, kRequest, seconds(3) * std::ssize(*victims), kSeed);
  OpenLoop load(arrivals, std::chrono::steady_clock::now(),
                [&](const Arrival&, const SubmitOptions& options) {
                  return (*others)->session().Submit(*request, options);
                });

  Random random(kSeed);
  std::vector<Trial> killed, closed;
  for (const Victim& victim : *victims) {
    const Result<Trial> trial = Play(**stage, victim, random);
    if (!trial.ok()) return trial.status();
    (victim.killed ? killed : closed).push_back(*trial);
  }
  if (Result<Ledger> ledger = LedgerUpTo(**recorder, DaemonNow()); !ledger.ok()) {
    return ledger.status();
  }
  nanoseconds longest{0};
  const std::vector<admin::Slice> slices = (*recorder)->Slices();
  for (const Trial& trial : killed) longest = std::max(longest, Lingered(trial, slices));
  const Measured with = P99(load, killed), without = P99(load, closed);
  return Measurement{
      .figures = {AtMost("session and memory gone, longest", Milliseconds(longest), "ms",
                         kGoneWithinMs + kHostWakeUpsMs),
                  AtMost("the others' p99", Milliseconds(with.value), "ms",
                         kOthersAtMost * Milliseconds(without.value) + kHostWakeUpsMs)},
      .not_run = {},
      .remark = std::to_string(killed.size()) + " killed, " + std::to_string(closed.size()) +
                " closed by themselves"};
}

}  // namespace gpusched::bench
