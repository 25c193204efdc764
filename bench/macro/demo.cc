// Plays the acts in order, each on real processes.
#include "macro/demo.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "ctl/admin_client.h"
#include "gpusched/units.h"
#include "macro/act.h"
#include "macro/run_program.h"
#include "support/arrivals.h"
#include "support/beside_update.h"
#include "support/daemon_process.h"
#include "support/figures_table.h"
#include "support/main_job.h"
#include "support/trace.h"

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::DaemonOptions;
using test::DaemonProcess;

constexpr double kLoad = 0.6;  // as the main job's
constexpr std::uint64_t kSeed = 1;
// Requests of a language model take up to half a second, so they get a target they can meet.
constexpr seconds kTraceTarget{1};
constexpr milliseconds kTraceLaunch{2};
// They have nothing to do with each other, so they need not wait in one line.
constexpr std::uint32_t kTraceQueues = 32;
constexpr const char* kDefaultTrace = "azure_llm_2023_conv_first_half.csv";

// What a service asks for in one turn of the timetable, and how it is judged.
struct Workload {
  Timetable timetable;
  Arrivals turn = {};
  Duration target = kMainTarget;
  Duration launch = milliseconds(1);
  std::uint32_t queues = 1;
};

Workload PoissonWorkload(Duration length) {
  Workload workload{.timetable = {.start = {}, .length = length}};
  workload.turn = MainJobRequests(workload.timetable.each());
  return workload;
}

// After the last request the load rests for one target, so that none is cut off before it is late.
Workload TraceWorkload(const Trace& trace, Duration length) {
  Workload workload{.timetable = {.start = {}, .length = length + kTraceTarget},
                    .target = kTraceTarget,
                    .launch = kTraceLaunch,
                    .queues = kTraceQueues};
  workload.turn = StretchOfLoad(trace.arrivals, 0, workload.timetable.dropped + length, kLoad);
  return workload;
}

// A daemon with the virtual device and the operator's line to it.
struct Stage {
  std::unique_ptr<DaemonProcess> daemon;
  admin::AdminClient admin;
};

Result<Stage> RaiseStage() {
  Result<std::unique_ptr<DaemonProcess>> daemon = DaemonProcess::Start();
  if (!daemon.ok()) return daemon.status();
  Result<admin::AdminClient> admin = admin::AdminClient::Connect((*daemon)->admin_endpoint());
  if (!admin.ok()) return admin.status();
  return Stage{.daemon = *std::move(daemon), .admin = *std::move(admin)};
}

// With or without either part of the job.
Act ActOf(const Stage& stage, const std::string& label, const Workload& workload,
          bool with_requests, bool with_update) {
  return {.label = label,
          .options = {.endpoint = stage.daemon->endpoint(),
                      .target = workload.target,
                      .request_launch = workload.launch,
                      .request_queues = workload.queues,
                      .update = with_update},
          .turn = with_requests ? workload.turn : Arrivals{},
          .timetable = workload.timetable};
}

Status MainJob(Stage& stage, const Workload& workload) {
  const std::vector<PolicyChoice> policies = LabelledPolicies(), first = {policies.front()};
  FiguresTable table;
  for (const auto& [act, under] :
       {std::pair(ActOf(stage, "requests alone", workload, true, false), first),
        std::pair(ActOf(stage, "update alone", workload, false, true), first),
        std::pair(ActOf(stage, "", workload, true, true), policies)}) {
    if (const auto played = Play(stage.admin, act, under, table); !played.ok()) {
      return played.status();
    }
  }
  std::printf("\n%s", table.Text().c_str());
  PrintLegend();
  return Status::Ok();
}

Result<Trace> DefaultTrace() {
  if (const std::optional<std::string> folder = RequestTraceFolder()) {
    return ReadTrace(*folder + "/" + kDefaultTrace);
  }
  return GeneratedTrace(2'000, kSeed);
}

Status TraceJob(Stage& stage, seconds length) {
  Result<Trace> trace = DefaultTrace();
  if (!trace.ok()) return trace.status();
  std::printf("\nThe same with a request trace: %s, time scaled to %s load, target %s.\n",
              trace->name.c_str(), FormatPart(kLoad).c_str(), FormatDuration(kTraceTarget).c_str());
  if (!trace->remark.empty()) std::printf("  (%s)\n", trace->remark.c_str());
  const Workload workload = TraceWorkload(*trace, length);
  FiguresTable table;
  const auto played =
      Play(stage.admin, ActOf(stage, "", workload, true, true), BuiltInPolicies(), table);
  if (!played.ok()) return played.status();
  std::printf("\n%s", table.Text().c_str());
  std::printf(
      "first come, first served on a device of its own: %s on time\n",
      FormatPart(OnTimeAlone(workload.turn, workload.target, workload.timetable.dropped)).c_str());
  return Status::Ok();
}

Status RealKernel(const std::string& program_folder) {
  std::printf("\nA real kernel: hello_job on the CPU through OpenCL.\n");
  std::fflush(stdout);
  DaemonOptions options;
  options.flags = {"--device=opencl"};
  Result<std::unique_ptr<DaemonProcess>> daemon = DaemonProcess::Start(options);
  if (!daemon.ok()) {
    std::printf("  not run (Debian package pocl-opencl-icd): %s\n",
                daemon.status().message().c_str());
    return Status::Ok();
  }
  return RunSample(program_folder + "/hello_job", (*daemon)->endpoint());
}

}  // namespace

Status RunDemo(const DemoOptions& options) {
  Result<Stage> stage = RaiseStage();
  if (!stage.ok()) return stage.status();
  Workload workload = PoissonWorkload(options.length);
  if (options.trace.empty()) {
    std::printf(
        "A recommendation service (8 ms a request, target 100 ms, Poisson 75/s) beside an\n"
        "endless model update (50 ms launches), on one virtual device.\n");
  } else {
    Result<Trace> trace = ReadTrace(options.trace);
    if (!trace.ok()) return trace.status();
    workload = TraceWorkload(*trace, options.length);
    std::printf(
        "Requests of %s, time scaled to %s load, target %s, beside an endless model\n"
        "update (50 ms launches), on one virtual device.\n",
        trace->name.c_str(), FormatPart(kLoad).c_str(), FormatDuration(kTraceTarget).c_str());
    if (!trace->remark.empty()) std::printf("  (%s)\n", trace->remark.c_str());
  }
  std::fflush(stdout);
  if (Status status = MainJob(*stage, workload); !status.ok()) return status;
  if (options.trace.empty()) {
    if (Status status = TraceJob(*stage, std::min(options.length, options.trace_length));
        !status.ok())
      return status;
  }
  stage->daemon.reset();
  return RealKernel(options.program_folder);
}

}  // namespace gpusched::bench
