// Sizes and times the work while launches run whole, then plays it with the daemon's own settings.
#include "macro/real_demo.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "macro/act.h"
#include "macro/progress_line.h"
#include "macro/run_program.h"
#include "support/main_job.h"
#include "support/real_stage.h"
#include "support/team_run.h"

namespace gpusched::bench {
namespace {

using std::chrono::seconds;

// Compares as it ends, and says what came of it.
class Results {
 public:
  void Add(const BesideUpdate::Results& results) {
    for (const Work::Checked* checked : {&results.requests, &results.update}) {
      compared_ += checked->compared;
      wrong_ += checked->wrong;
    }
  }
  void Add(const Work::Checked& checked) {
    compared_ += checked.compared;
    wrong_ += checked.wrong;
  }
  Status Told() const {
    std::printf("results: %zu compared with a plain computation on the CPU, %zu wrong\n", compared_,
                wrong_);
    if (wrong_ == 0) return Status::Ok();
    return Status(StatusCode::kInternal, "WRONG_RESULTS",
                  "a kernel did not compute what the CPU computes");
  }

 private:
  std::size_t compared_ = 0, wrong_ = 0;
};

// The first to open finds the sizes; so both open once, and go again.
Status FindSizes(RealStage& stage, BesideUpdateOptions options) {
  options.requests = {Arrival{}};
  if (const auto job = BesideUpdate::Open(options); !job.ok()) return job.status();
  return stage.SetBound(kDefaultBound);
}

// Each alone, then both under each policy.
Status PlayAll(RealStage& stage, const BesideUpdateOptions& options, const Arrivals& turn,
               const Timetable& timetable) {
  FiguresTable table;
  Results results;
  const std::vector<PolicyChoice> policies = LabelledPolicies();
  Act requests_alone{.label = options.request_name + " alone",
                     .options = options,
                     .turn = turn,
                     .timetable = timetable};
  requests_alone.options.update = false;
  const Act update_alone{
      .label = options.update_name + " alone", .options = options, .timetable = timetable};
  const Act both{.options = options, .turn = turn, .timetable = timetable};
  std::string remark;
  for (const Act* act : {&std::as_const(requests_alone), &update_alone, &both}) {
    const bool alone = act != &both;
    const auto played = Play(stage.admin(), *act,
                             alone ? std::vector<PolicyChoice>{policies.front()} : policies, table);
    if (!played.ok()) return played.status();
    results.Add(*played);
    remark = played->requests.remark + "; " + options.update_name + ": " + played->update.remark;
  }
  std::printf("\n%s", table.Text().c_str());
  PrintLegend();
  std::printf("%s\n", remark.c_str());
  return results.Told();
}

}  // namespace

Status RunRealMainJob(const DemoOptions& options) {
  Result<std::unique_ptr<RealStage>> stage = RealStage::Raise();
  if (!stage.ok()) return stage.status();
  std::printf(
      "A recommendation service (embedding gather, two layers, top-k; 8 ms a request, target\n"
      "100 ms, Poisson 75/s) beside the endless update of its model (gradient steps of 50 ms),\n"
      "both computed on the CPU through OpenCL. Finding their sizes ...\n");
  std::fflush(stdout);
  const RealWork work = RecommendationWork((*stage)->admin());
  const BesideUpdateOptions job = RealMainJob(**stage, work);
  if (Status status = FindSizes(**stage, job); !status.ok()) return status;
  const Timetable timetable{.start = {}, .length = options.length};
  if (Status status = PlayAll(**stage, job, MainJobRequests(timetable.each()), timetable);
      !status.ok()) {
    return status;
  }
  std::printf("\nAnd hello_job through the same daemon:\n");
  std::fflush(stdout);
  return RunSample(options.program_folder + "/hello_job", (*stage)->daemon().endpoint());
}

Status RunGameDemo(const DemoOptions& options) {
  Result<std::unique_ptr<RealStage>> stage = RealStage::Raise();
  if (!stage.ok()) return stage.status();
  std::printf(
      "A game (60 frames a second of 10 ms, target 20 ms, late ones are skipped) beside endless\n"
      "analytics (k-means and histograms of 300 ms, target 5 s), both computed on the CPU through\n"
      "OpenCL. Finding their sizes ...\n");
  std::fflush(stdout);
  const RealWork work = GameWork((*stage)->admin());
  const BesideUpdateOptions job = RealGame(**stage, work);
  if (Status status = FindSizes(**stage, job); !status.ok()) return status;
  const Timetable timetable{.start = {}, .length = options.length};
  return PlayAll(**stage, job, FramesDue(timetable.each()), timetable);
}

namespace {

void AddRows(const std::string& policy, const std::array<MemberFigures, kTeamSize>& figures) {
  for (std::size_t i = 0; i < kTeamSize; ++i) {
    const MemberFigures& member = figures[i];
    std::printf("%-20s  %-8s  %6d  %7s  %7s  %6zu\n", policy.c_str(), member.name.c_str(),
                TheTeam()[i].weight, member.asked ? FormatPart(*member.asked).c_str() : "-",
                FormatPart(member.got).c_str(), member.steps);
  }
}

}  // namespace

Status RunTeamDemo(const DemoOptions& options) {
  Result<std::unique_ptr<RealStage>> stage = RealStage::Raise();
  if (!stage.ok()) return stage.status();
  if (Status status = (*stage)->SetBound(kDefaultBound); !status.ok()) return status;
  std::printf(
      "Three trainings on one device, computed on the CPU through OpenCL: a paper with a deadline\n"
      "(weight 70, 80 %% of the memory), a thesis (20) and a course (10). Preparing their data "
      "...\n");
  std::fflush(stdout);
  admin::AdminClient& admin = (*stage)->admin();
  Result<std::unique_ptr<TeamRun>> team = TeamRun::Start((*stage)->daemon().endpoint());
  if (!team.ok()) return team.status();
  std::printf("%-20s  %-8s  %6s  %7s  %7s  %6s\n", "run", "trainer", "weight", "asked", "got",
              "steps");
  for (const PolicyChoice& policy : BuiltInPolicies()) {
    if (const auto set = admin.SetPolicy({.kind = policy.kind}); !set.ok()) return set.status();
    std::this_thread::sleep_for(Timetable{}.dropped);
    if (Status status = (*team)->BeginWindow(admin); !status.ok()) return status;
    ProgressLine line;
    for (seconds into{1}; into <= options.length; ++into) {
      std::this_thread::sleep_for(seconds(1));
      line.Show(policy.label + ": " + std::to_string(into.count()) + " of " +
                std::to_string(options.length.count()) + " s");
    }
    line.Done();
    const auto figures = (*team)->EndWindow(admin);
    if (!figures.ok()) return figures.status();
    AddRows(policy.label, *figures);
  }
  std::printf("one byte more than its quota was refused to %zu of %zu while all trained\n",
              (*team)->BytesTooManyRefused(), kTeamSize);
  const auto checked = (*team)->Finish();
  if (!checked.ok()) return checked.status();
  Results results;
  for (std::size_t i = 0; i < kTeamSize; ++i) {
    std::printf("%s: %s\n", TheTeam()[i].name.c_str(), (*checked)[i].remark.c_str());
    results.Add((*checked)[i]);
  }
  return results.Told();
}

}  // namespace gpusched::bench
