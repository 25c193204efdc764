// Four hundred changes of the policy while three sessions keep the device full.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "promises/stage.h"
#include "promises/table.h"
#include "support/percentile.h"
#include "support/virtual_work.h"

namespace gpusched::bench {
namespace {

constexpr int kChanges = 400;  // every other one another kind, the rest other parameters
constexpr double kGapMs = 1;
// Short enough that hardly any is cut, so that the jobs' times are the commands' times.
constexpr microseconds kLaunches[] = {microseconds(200), microseconds(300), microseconds(400)};
constexpr int kWeights[] = {50, 30, 20};
constexpr int kPriorities[] = {1, 0, 0};
constexpr int kOutstanding = 100;  // of each queue: 20 ms and more

// Feeds one queue, waits for its jobs in the order of their submission and keeps every report.
class Line {
 public:
  Line(Session& session, const Template& job, std::uint32_t queue) {
    thread_ = std::thread([this, &session, &job, queue] { Run(session, job, queue); });
  }
  // Submits no more and waits for all that it has submitted.
  void Finish() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  ~Line() { Finish(); }

  // After Finish.
  std::uint64_t submitted() const { return submitted_; }
  const std::vector<JobReport>& done() const { return done_; }
  const Status& status() const { return status_; }

 private:
  void Run(Session& session, const Template& job, std::uint32_t queue) {
    std::deque<Submission> waiting;
    while (true) {
      while (!stopping_ && waiting.size() < kOutstanding) {
        Result<Submission> submission = session.Submit(job, {.queue = queue});
        if (!submission.ok()) {
          status_ = submission.status();
          stopping_ = true;
          break;
        }
        ++submitted_;
        waiting.push_back(*std::move(submission));
      }
      if (waiting.empty()) return;
      const Result<JobReport> report = waiting.front().Wait();
      waiting.pop_front();
      if (report.ok() && report->outcome == Outcome::kDone) done_.push_back(*report);
      if (!report.ok() && status_.ok()) status_ = report.status();
    }
  }

  std::atomic<bool> stopping_{false};
  std::uint64_t submitted_ = 0;
  std::vector<JobReport> done_;
  Status status_;
  std::thread thread_;
};

// Two queues of one session.
struct Service {
  Duration launch{0};
  std::unique_ptr<Worker> worker;
  std::optional<Template> job;
  std::vector<std::unique_ptr<Line>> lines;
};

Result<std::unique_ptr<Service>> OpenService(Stage& stage, int index) {
  auto service = std::make_unique<Service>();
  service->launch = kLaunches[index];
  Result<std::unique_ptr<Worker>> worker =
      stage.Open("service", {.weight = kWeights[index], .priority = kPriorities[index]});
  if (!worker.ok()) return worker.status();
  service->worker = *std::move(worker);
  Session& session = service->worker->session();
  Result<Template> job = session.RegisterTemplate(
      LaunchesOf(service->worker->kernel(true), kLaunches[index], kLaunches[index]));
  if (!job.ok()) return job.status();
  service->job.emplace(*std::move(job));
  const Result<std::uint32_t> second = session.OpenQueue();
  if (!second.ok()) return second.status();
  for (const std::uint32_t queue : {0u, *second}) {
    service->lines.push_back(std::make_unique<Line>(session, *service->job, queue));
  }
  return service;
}

// An operator's call by the daemon's clock, and the policy in force from then on.
struct Call {
  nanoseconds begin{0}, end{0};
  std::uint64_t generation = 0;
  bool shares_promised = true;
};

Result<Call> Change(Stage& stage, int index) {
  static const std::vector<std::string> kKinds = {"preemptive_priority", "round_robin",
                                                  "weighted_share"};
  static const std::vector<std::string> kSlices = {"500us", "2ms", "4ms"};
  const auto step = static_cast<std::size_t>(index / 2);
  const std::string& kind = kKinds[step % kKinds.size()];
  admin::AdminClient::Update update{.kind = kind};
  if (index % 2 == 1) {
    const std::string slice = kind == "preemptive_priority" ? "slice.min" : "slice";
    update.parameters[slice] = kSlices[step / kKinds.size() % kSlices.size()];
  }
  Call call{.begin = DaemonNow(), .shares_promised = kind != "preemptive_priority"};
  const Result<admin::Policy> set = stage.admin().SetPolicy(update);
  if (!set.ok()) return set.status();
  call.end = DaemonNow();
  call.generation = set->generation;
  return call;
}

// As much talk with the operator, and nothing changed.
Result<Call> Look(Stage& stage) {
  Call call{.begin = DaemonNow()};
  const Result<admin::Policy> policy = stage.admin().GetPolicy();
  if (!policy.ok()) return policy.status();
  call.end = DaemonNow();
  call.generation = policy->generation;
  return call;
}

// When the device worked: every job was one command, but for a few that were cut in two.
std::vector<std::pair<nanoseconds, nanoseconds>> CommandTimes(
    const std::vector<std::unique_ptr<Service>>& services) {
  std::vector<std::pair<nanoseconds, nanoseconds>> times;
  for (const auto& service : services) {
    for (const auto& line : service->lines) {
      for (const JobReport& report : line->done()) times.emplace_back(report.started, report.ended);
    }
  }
  std::sort(times.begin(), times.end());
  nanoseconds last{0};
  for (auto& [started, ended] : times) last = ended = std::max(last, ended);
  return times;
}

// The longest time between two commands that touches each call.
std::vector<nanoseconds> GapsAt(const std::vector<Call>& calls,
                                const std::vector<std::pair<nanoseconds, nanoseconds>>& commands) {
  std::vector<nanoseconds> gaps;
  for (const Call& call : calls) {
    auto after = std::partition_point(commands.begin(), commands.end(), [&](const auto& command) {
      return command.first < call.begin;
    });
    nanoseconds longest{0};
    for (; after != commands.begin() && after != commands.end(); ++after) {
      const nanoseconds before = (after - 1)->second;
      longest = std::max(longest, after->first - before);
      if (before > call.end) break;
    }
    gaps.push_back(longest);
  }
  return gaps;
}

struct Books {
  std::uint64_t lost = 0, doubled = 0, reordered = 0;
};

// The harness's own book-keeping beside the daemon's: its count of ended jobs, and the device time
// that it charged and no report explains.
Result<Books> Compare(Stage& stage, const std::vector<std::unique_ptr<Service>>& services) {
  const Result<std::vector<admin::Session>> sessions = stage.admin().Sessions();
  if (!sessions.ok()) return sessions.status();
  Books books;
  for (const auto& service : services) {
    std::uint64_t submitted = 0;
    nanoseconds reported{0};
    for (const auto& line : service->lines) {
      if (!line->status().ok()) return line->status();
      for (const JobReport& report : line->done()) reported += report.charged;
      submitted += line->submitted();
      books.lost += line->submitted() - line->done().size();
      for (std::size_t i = 1; i < line->done().size(); ++i) {
        if (line->done()[i].started < line->done()[i - 1].ended) ++books.reordered;
      }
    }
    for (const admin::Session& session : *sessions) {
      if (session.id != service->worker->id()) continue;
      if (session.jobs_done > submitted) books.doubled += session.jobs_done - submitted;
      const nanoseconds unexplained = session.charged - reported;
      if (unexplained >= service->launch) {
        books.doubled += static_cast<std::uint64_t>(unexplained / service->launch);
      }
    }
  }
  return books;
}

// What the accounts say was asked, by session.
Result<std::map<std::uint64_t, nanoseconds>> Asked(Stage& stage) {
  const Result<std::vector<admin::Session>> sessions = stage.admin().Sessions();
  if (!sessions.ok()) return sessions.status();
  std::map<std::uint64_t, nanoseconds> asked;
  for (const admin::Session& session : *sessions) asked[session.id] = session.asked;
  return asked;
}

// Points between asked and got, over the time in which shares were promised.
double FurthestOff(const std::vector<std::unique_ptr<Service>>& services,
                   const std::vector<Call>& periods, nanoseconds end,
                   const std::map<std::uint64_t, nanoseconds>& asked) {
  std::set<std::uint64_t> generations;
  nanoseconds time{0};
  for (std::size_t i = 0; i < periods.size(); ++i) {
    if (!periods[i].shares_promised) continue;
    generations.insert(periods[i].generation);
    time += (i + 1 < periods.size() ? periods[i + 1].end : end) - periods[i].end;
  }
  double furthest = 0;
  for (const auto& service : services) {
    nanoseconds got{0};
    for (const auto& line : service->lines) {
      for (const JobReport& report : line->done()) {
        const bool counts = generations.contains(report.generation) &&
                            report.ended > periods.front().end && report.ended <= end;
        if (counts) got += report.charged;
      }
    }
    const nanoseconds off = asked.at(service->worker->id()) - got;
    furthest = std::max(furthest, 100 * std::abs(static_cast<double>(off.count())) /
                                      static_cast<double>(time.count()));
  }
  return furthest;
}

}  // namespace

Result<Measurement> MeasureHotSwap(Length length) {
  const milliseconds between = length == Length::kFull ? milliseconds(300) : milliseconds(60);
  Result<std::unique_ptr<Stage>> stage = Stage::Raise({.flags = {"--policy=weighted_share"}});
  if (!stage.ok()) return stage.status();
  std::vector<std::unique_ptr<Service>> services;
  for (int i = 0; i < 3; ++i) {
    Result<std::unique_ptr<Service>> service = OpenService(**stage, i);
    if (!service.ok()) return service.status();
    services.push_back(*std::move(service));
  }
  nanoseconds next = DaemonNow() + seconds(1);
  std::vector<Call> looks, changes;
  for (int i = 0; i < kChanges / 2; ++i, next += between) {
    WaitUntil(next);
    const Result<Call> look = Look(**stage);
    if (!look.ok()) return look.status();
    looks.push_back(*look);
  }
  const auto asked_before = Asked(**stage);
  if (!asked_before.ok()) return asked_before.status();
  std::vector<Call> periods = {{.end = DaemonNow(), .generation = looks.back().generation}};
  for (int i = 0; i < kChanges; ++i, next += between) {
    WaitUntil(next);
    const Result<Call> change = Change(**stage, i);
    if (!change.ok()) return change.status();
    changes.push_back(*change);
    periods.push_back(*change);
  }
  WaitUntil(next);
  auto asked = Asked(**stage);
  if (!asked.ok()) return asked.status();
  const nanoseconds end = DaemonNow();
  for (auto& [session, time] : *asked) time -= asked_before->at(session);
  for (const auto& service : services) {
    for (const auto& line : service->lines) line->Finish();
  }

  const Result<Books> books = Compare(**stage, services);
  if (!books.ok()) return books.status();
  const auto commands = CommandTimes(services);
  const double usual = Milliseconds(Percentile(GapsAt(looks, commands), 99));
  const double at_changes = Milliseconds(Percentile(GapsAt(changes, commands), 99));
  const double off = FurthestOff(services, periods, end, *asked);
  return Measurement{
      .figures = {AtMost("jobs lost", static_cast<double>(books->lost), "", 0),
                  AtMost("jobs run twice", static_cast<double>(books->doubled), "", 0),
                  AtMost("jobs reordered", static_cast<double>(books->reordered), "", 0),
                  AtMost("asked and got apart, 400 changes", off, "points", 1),
                  AtMost("gap at a change, p99", at_changes, "ms",
                         usual + kGapMs + kHostWakeUpsMs)},
      .not_run = {},
      .remark = std::to_string(commands.size()) + " jobs"};
}

}  // namespace gpusched::bench
