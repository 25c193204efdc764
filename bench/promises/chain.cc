// A chain of short kernels through the daemon beside the same chain enqueued straight.
#include <cstdio>
#include <deque>
#include <utility>

#include "promises/opencl_stage.h"
#include "promises/straight.h"
#include "promises/table.h"

namespace gpusched::bench {
namespace {

// Rounds a microsecond are read off a launch of this length.
constexpr milliseconds kRuler{2};
constexpr int kOutstanding = 2;
constexpr int kTurns = 12, kFullTurns = 60, kChainsATurn = 25;
constexpr double kMostOverStraight = 1.05;

// Milliseconds from the end of one chain to the end of the next, with two outstanding.
Result<std::vector<double>> ThroughTheDaemon(Session& session, const Template& chain, int count) {
  std::deque<Submission> waiting;
  std::vector<double> times;
  nanoseconds ended = DaemonNow();
  for (int started = 0; static_cast<int>(times.size()) < count;) {
    while (started < count && static_cast<int>(waiting.size()) < kOutstanding) {
      Result<Submission> submission = session.Submit(chain);
      if (!submission.ok()) return submission.status();
      waiting.push_back(*std::move(submission));
      ++started;
    }
    const Result<JobReport> report = waiting.front().Wait();
    if (!report.ok()) return report.status();
    waiting.pop_front();
    times.push_back(Milliseconds(DaemonNow() - ended));
    ended = DaemonNow();
  }
  return times;
}

}  // namespace

Result<Measurement> MeasureChain(Length length) {
  Result<std::unique_ptr<OpenClStage>> stage = OpenClStage::Raise();
  if (!stage.ok()) {
    if (auto lacks = LacksOpenCl(stage.status())) return Measurement{{}, *lacks, {}};
    return stage.status();
  }
  Result<std::unique_ptr<Straight>> straight = Straight::Start(SettingsOfTheDaemon());
  if (!straight.ok()) return straight.status();
  const Result<Spin> ruler = (*straight)->Calibrate(kChainBlocks, kRuler);
  if (!ruler.ok()) return ruler.status();
  const double rounds_per_us = ruler->rounds / (1'000 * Milliseconds(kRuler));
  Result<std::unique_ptr<SpinWorker>> worker = (*stage)->Open("chain", {});
  if (!worker.ok()) return worker.status();
  Session& session = (*worker)->session();
  const Result<Template> chain =
      session.RegisterTemplate((*worker)->JobOf(ChainOfSpins(rounds_per_us)));
  if (!chain.ok()) return chain.status();

  std::vector<double> ours, theirs;
  const int turns = length == Length::kFull ? kFullTurns : kTurns;
  for (int turn = -1; turn < turns; ++turn) {  // the first teaches the estimates
    for (const bool daemon : {false, true}) {
      const Result<std::vector<double>> took =
          daemon ? ThroughTheDaemon(session, *chain, kChainsATurn)
                 : (*straight)->Chains(rounds_per_us, kChainsATurn);
      if (!took.ok()) return took.status();
      // A turn's first chain fills the line.
      auto& all = daemon ? ours : theirs;
      if (turn >= 0) all.insert(all.end(), took->begin() + 1, took->end());
    }
  }
  char remark[120];
  std::snprintf(remark, sizeof remark, "median of a chain: straight %.2f ms, through us %.2f ms",
                MedianOf(theirs), MedianOf(ours));
  return Measurement{.figures = {AtMost("chain of 175 kernels, over straight",
                                        MedianOf(ours) / MedianOf(theirs), "x", kMostOverStraight)},
                     .not_run = {},
                     .remark = remark};
}

}  // namespace gpusched::bench
