// A short kernel with a target beside endless long ones, against what the driver does by itself.
#include <cstdio>
#include <functional>
#include <thread>
#include <utility>

#include "promises/opencl_stage.h"
#include "promises/straight.h"
#include "promises/table.h"
#include "support/endless.h"

namespace gpusched::bench {
namespace {

constexpr milliseconds kHigh{2}, kLow{10}, kPeriod{20}, kTarget{20};
constexpr std::uint32_t kHighBlocks = 32, kLowBlocks = 128;
constexpr int kTurns = 6, kRequestsATurn = 90, kFullRequestsATurn = 1'000;
// Until both sides are under way and estimates are learned.
constexpr milliseconds kSettle{100};
constexpr int kLowOutstanding = 2;
constexpr double kMostP99OverAlone = 1.3, kMostP50OverAlone = 1.5, kLeastLow = 0.88;

// One way to run the two, over all turns.
struct Way {
  std::vector<double> latencies;  // ms
  std::vector<double> low_per_second;

  double p50() const { return PercentileOf(latencies, 50); }
  double p99() const { return PercentileOf(latencies, 99); }
  double low() const { return MedianOf(low_per_second); }
};

// The two kernels, calibrated alone at the driver's own defaults.
struct Work {
  Spin high, low;
};

class Contest {
 public:
  static Result<std::unique_ptr<Contest>> Open() {
    auto contest = std::unique_ptr<Contest>(new Contest);
    Result<std::unique_ptr<OpenClStage>> stage =
        OpenClStage::Raise({"--policy=preemptive_priority"});
    if (!stage.ok()) return stage.status();
    contest->stage_ = *std::move(stage);
    for (auto& [process, before] :
         {std::pair<std::unique_ptr<Straight>*, std::vector<std::string>>{&contest->high_, {}},
          {&contest->low_, {}},
          {&contest->nice_low_, {"nice", "-n", "19"}}}) {
      Result<std::unique_ptr<Straight>> started = Straight::Start({}, before);
      if (!started.ok()) return started.status();
      *process = *std::move(started);
    }
    const Result<Spin> high = contest->high_->Calibrate(kHighBlocks, kHigh);
    const Result<Spin> low = contest->low_->Calibrate(kLowBlocks, kLow);
    if (!high.ok()) return high.status();
    if (!low.ok()) return low.status();
    contest->work_ = {.high = *high, .low = *low};
    for (auto& [worker, share] :
         {std::pair<std::unique_ptr<SpinWorker>*, DeclaredShare>{
              &contest->our_high_, {.priority = 10, .latency_target = kTarget}},
          {&contest->our_low_, {}}}) {
      Result<std::unique_ptr<SpinWorker>> opened = contest->stage_->Open("worker", share);
      if (!opened.ok()) return opened.status();
      *worker = *std::move(opened);
    }
    return contest;
  }

  Status Alone(int requests, std::uint64_t seed, Way& way) {
    return Append(high_->Paced(work_.high, kPeriod, requests, seed), way.latencies);
  }

  Status Beside(Straight& low, int requests, std::uint64_t seed, Way& way) {
    if (Status status = low.Begin(work_.low); !status.ok()) return status;
    std::this_thread::sleep_for(kSettle);
    Status status = Alone(requests, seed, way);
    const Result<double> per_second = low.End();
    if (!per_second.ok()) return per_second.status();
    way.low_per_second.push_back(*per_second);
    return status;
  }

  Status Ours(int requests, std::uint64_t seed, Way& way) {
    Session& low = our_low_->session();
    const Result<Template> long_job = low.RegisterTemplate(our_low_->JobOf({work_.low}));
    if (!long_job.ok()) return long_job.status();
    const Endless load(kLowOutstanding, [&] { return low.Submit(*long_job); });
    std::this_thread::sleep_for(kSettle);
    const SteadyTime begin = std::chrono::steady_clock::now();
    Status status = Append(Paced(requests, seed), way.latencies);
    const SteadyTime end = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(end - begin).count();
    way.low_per_second.push_back(static_cast<double>(load.DoneBetween(begin, end).size()) /
                                 seconds);
    return status.ok() ? load.status() : status;
  }

  Straight& low() { return *low_; }
  Straight& nice_low() { return *nice_low_; }

 private:
  Contest() = default;

  static Status Append(const Result<std::vector<double>>& more, std::vector<double>& to) {
    if (!more.ok()) return more.status();
    to.insert(to.end(), more->begin(), more->end());
    return Status::Ok();
  }

  // As straight_main.cc paces its own.
  Result<std::vector<double>> Paced(int requests, std::uint64_t seed) {
    Session& high = our_high_->session();
    const Result<Template> job = high.RegisterTemplate(our_high_->JobOf({work_.high}));
    if (!job.ok()) return job.status();
    Random random(seed);
    std::vector<double> latencies;
    const nanoseconds start = DaemonNow();
    for (int i = 0; i < requests; ++i) {
      const nanoseconds due =
          start + i * kPeriod + microseconds(random.Below(microseconds(kPeriod).count()));
      WaitUntil(due);
      Result<Submission> submission = high.Submit(*job);
      if (!submission.ok()) return submission.status();
      const Result<JobReport> report = submission->Wait();
      if (!report.ok()) return report.status();
      latencies.push_back(Milliseconds(DaemonNow() - due));
    }
    return latencies;
  }

  std::unique_ptr<OpenClStage> stage_;
  std::unique_ptr<Straight> high_, low_, nice_low_;
  std::unique_ptr<SpinWorker> our_high_, our_low_;
  Work work_;
};

std::string Line(const char* name, const Way& way) {
  char line[120];
  std::snprintf(line, sizeof line, "  %-26s p50 %6.2f ms  p99 %6.2f ms", name, way.p50(),
                way.p99());
  std::string text = line;
  if (!way.low_per_second.empty()) {
    std::snprintf(line, sizeof line, "  low %6.1f /s", way.low());
    text += line;
  }
  return text + "\n";
}

}  // namespace

Result<Measurement> MeasureHighBesideLow(Length length) {
  Result<std::unique_ptr<Contest>> contest = Contest::Open();
  if (!contest.ok()) {
    if (auto lacks = LacksOpenCl(contest.status())) return Measurement{{}, *lacks, {}};
    return contest.status();
  }
  const int requests = length == Length::kFull ? kFullRequestsATurn : kRequestsATurn;
  Way alone, straight, nice, ours, warm_up;
  if (Status status = (*contest)->Ours(kRequestsATurn / 4, 99, warm_up); !status.ok())
    return status;
  for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
    for (const std::function<Status()>& play :
         {std::function<Status()>([&] { return (*contest)->Alone(requests, turn, alone); }),
          std::function<Status()>(
              [&] { return (*contest)->Beside((*contest)->low(), requests, turn, straight); }),
          std::function<Status()>(
              [&] { return (*contest)->Beside((*contest)->nice_low(), requests, turn, nice); }),
          std::function<Status()>([&] { return (*contest)->Ours(requests, turn, ours); })}) {
      if (Status status = play(); !status.ok()) return status;
    }
  }
  return Measurement{
      .figures = {AtMost("p99 over alone", ours.p99() / alone.p99(), "x", kMostP99OverAlone),
                  AtMost("p99 over straight beside low", ours.p99() / straight.p99(), "x", 1),
                  AtMost("p99 over straight, low at nice 19", ours.p99() / nice.p99(), "x", 1),
                  AtMost("p50 over alone", ours.p50() / alone.p50(), "x", kMostP50OverAlone),
                  AtLeast("low over straight beside", ours.low() / straight.low(), "x", kLeastLow)},
      .not_run = {},
      .remark = Line("alone", alone) + Line("straight, two processes", straight) +
                Line("straight, low at nice 19", nice) + Line("gpusched", ours)};
}

}  // namespace gpusched::bench
