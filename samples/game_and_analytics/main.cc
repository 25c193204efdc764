// A game that draws 60 frames a second beside analytics that never end, each a session of its own.
#include <gpusched/client.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "analytics.h"
#include "common/command_line.h"
#include "common/computing_session.h"
#include "common/loads.h"
#include "common/service_report.h"
#include "frames.h"

namespace game {
namespace {

using namespace std::chrono_literals;

struct Options {
  samples::CommonOptions common;
  bool only_frames = false, only_analytics = false;
  gpusched::Duration frame_alone = 10ms, analysis_alone = 300ms, launch = 1ms;
};

constexpr gpusched::Duration kPeriod = 16'666'667ns, kFrameTarget = 20ms, kAnalysisTarget = 5s;
constexpr std::size_t kOutstandingAnalyses = 2;
// After the run: a tile of a frame takes no time, an analysis as long as on the device or longer.
constexpr std::size_t kCheckedFrames = 200, kCheckedAnalyses = 3;

// Calls check(index) for about `most` of the jobs that are done.
template <typename Check>
void CheckSome(samples::ServiceReport& report, std::size_t most, Check check) {
  const std::vector<samples::LoadedJob>& jobs = report.outcome.jobs;
  const std::size_t every = std::max<std::size_t>(1, jobs.size() / most);
  for (std::size_t i = 0; i < jobs.size(); i += every) {
    if (jobs[i].fate != samples::Fate::kDone) continue;
    ++report.checked;
    if (!check(i)) ++report.wrong;
  }
}

// A service that is ready: its session is open and its jobs have their size.
template <typename Work>
struct Service {
  gpusched::Session session;
  std::unique_ptr<Work> work;
};

template <typename Work>
gpusched::Result<std::unique_ptr<Service<Work>>> Ready(const Options& options, const char* name,
                                                       const gpusched::DeclaredShare& share,
                                                       gpusched::Duration alone) {
  auto session = samples::OpenComputingSession(options.common, {.name = name, .share = share});
  if (!session.ok()) return session.status();
  std::unique_ptr<Service<Work>> service(new Service<Work>{*std::move(session), nullptr});
  auto work = Work::Open(service->session, samples::SizeOf(options.common, alone, options.launch));
  if (!work.ok()) return work.status();
  service->work = *std::move(work);
  return service;
}

void Draw(const Options& options, Frames& frames, samples::ServiceReport& report) {
  const auto due = samples::EvenInstants(kPeriod, options.common.length());
  std::vector<Frame> drawn(due.size());
  report.outcome =
      samples::RunWhenDue(due,
                          [&](std::size_t index, const gpusched::SubmitOptions& submit_options) {
                            drawn[index].number = index;
                            return frames.Submit(drawn[index], submit_options);
                          },
                          {.skip_if_late = true});
  report.figures.emplace_back("rows_of_pixels", frames.tile_rows() * kTile);
  CheckSome(report, kCheckedFrames, [&](std::size_t i) { return frames.IsRight(drawn[i]); });
}

void Analyse(const Options& options, Analytics& analytics, samples::ServiceReport& report) {
  std::deque<Analysis> analyses;
  report.outcome = samples::RunBackToBack(
      options.common.length(), kOutstandingAnalyses,
      [&](std::size_t index, const gpusched::SubmitOptions& submit_options) {
        analyses.push_back({.seed = static_cast<std::uint32_t>(index), .findings = {}});
        return analytics.Submit(analyses.back(), submit_options);
      });
  report.figures.emplace_back("points", analytics.points());
  CheckSome(report, kCheckedAnalyses,
            [&](std::size_t i) { return analytics.IsRight(analyses[i]); });
}

gpusched::Result<bool> Run(const Options& options) {
  samples::ServiceReport frames{.service = "frames",
                                .jobs_are = "frames",
                                .target = kFrameTarget,
                                .share = {.weight = 70, .priority = 10},
                                .outcome = {}};
  samples::ServiceReport analytics{.service = "analytics",
                                   .jobs_are = "analyses",
                                   .target = kAnalysisTarget,
                                   .share = {.weight = 30},
                                   .outcome = {}};
  frames.share.latency_target = kFrameTarget;
  analytics.share.latency_target = kAnalysisTarget;
  // One after the other, so that each is measured alone.
  std::unique_ptr<Service<Frames>> game;
  std::unique_ptr<Service<Analytics>> analysts;
  if (!options.only_analytics) {
    auto ready = Ready<Frames>(options, "game", frames.share, options.frame_alone);
    if (!ready.ok()) return ready.status();
    game = *std::move(ready);
  }
  if (!options.only_frames) {
    auto ready = Ready<Analytics>(options, "analytics", analytics.share, options.analysis_alone);
    if (!ready.ok()) return ready.status();
    analysts = *std::move(ready);
  }
  std::thread beside;
  if (analysts) beside = std::thread([&] { Analyse(options, *analysts->work, analytics); });
  if (game) Draw(options, *game->work, frames);
  if (beside.joinable()) beside.join();

  std::vector<samples::ServiceReport> reports;
  if (game) reports.push_back(std::move(frames));
  if (analysts) reports.push_back(std::move(analytics));
  samples::Print("game_and_analytics", game ? game->session.device() : analysts->session.device(),
                 reports, options.common.json);
  return std::none_of(reports.begin(), reports.end(),
                      [](const samples::ServiceReport& report) { return report.failed(); });
}

int Main(int argc, char** argv) {
  Options options;
  samples::CommandLine command_line(
      "game_and_analytics", "draws 60 frames a second beside endless analytics", options.common);
  command_line.Add("--only-frames", "without the analytics", options.only_frames);
  command_line.Add("--only-analytics", "without the game", options.only_analytics);
  command_line.Add("--frame", "device time of a frame, alone (10ms)", options.frame_alone);
  command_line.Add("--analysis", "device time of an analysis, alone (300ms)",
                   options.analysis_alone);
  command_line.Add("--launch", "longest launch, about (1ms)", options.launch);
  if (const auto status = command_line.Parse(argc, argv)) return *status;
  if (options.only_frames && options.only_analytics) {
    return command_line.Wrong("nothing is left with both --only options");
  }
  const gpusched::Result<bool> right = Run(options);
  if (right.ok()) return *right ? 0 : 1;
  std::fprintf(stderr, "game_and_analytics: %s\n", right.status().ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace game

int main(int argc, char** argv) { return game::Main(argc, argv); }
