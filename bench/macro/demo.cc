// Plays the acts in order, each on real processes.
#include "macro/demo.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "ctl/admin_client.h"
#include "gpusched/units.h"
#include "macro/progress_line.h"
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
// So long from opening the sessions until the first request is due.
constexpr milliseconds kLeadIn{200};

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

// Runs `policies` in turn with or without either part of the job, and adds a row group each.
Status Act(Stage& stage, const std::string& label, const Workload& workload, bool with_requests,
           bool with_update, const std::vector<PolicyChoice>& policies, FiguresTable& table) {
  Timetable timetable = workload.timetable;
  timetable.start = std::chrono::steady_clock::now() + kLeadIn;
  BesideUpdateOptions options{.endpoint = stage.daemon->endpoint(),
                              .target = workload.target,
                              .request_launch = workload.launch,
                              .request_queues = workload.queues,
                              .update = with_update};
  if (with_requests) {
    options.requests = Repeated(workload.turn, timetable.each(), static_cast<int>(policies.size()));
  }
  Result<std::unique_ptr<BesideUpdate>> job = BesideUpdate::Start(options, timetable.start);
  if (!job.ok()) return job.status();

  ProgressLine line;
  const auto tick = [&](const PolicyChoice& policy, Duration into) {
    const BesideUpdate::Progress progress = (*job)->progress();
    std::string text = (label.empty() ? policy.label : label) + ": " +
                       std::to_string(into / seconds(1)) + " of " +
                       std::to_string(timetable.length / seconds(1)) + " s";
    if (with_requests) {
      text += ", " + std::to_string(progress.on_time) + " of " + std::to_string(progress.due) +
              " requests answered on time so far";
    }
    if (with_update) text += ", update: " + std::to_string(progress.update_jobs) + " launches";
    line.Show(text);
  };
  const auto windows = UnderEachPolicy(stage.admin, {job->get()}, policies, timetable, tick);
  line.Done();
  if (!windows.ok()) return windows.status();
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const WindowFigures& figures = (*windows)[i].front();
    table.Add(label.empty() ? policies[i].label : label, figures);
    // A generator that could not keep up is part of the figures; say so rather than hide it.
    if (figures.behind_ms > 20) {
      std::printf("  (the load generator was up to %.0f ms behind; it counts as latency)\n",
                  figures.behind_ms);
    }
  }
  return Status::Ok();
}

void PrintLegend() {
  std::printf(
      "\non time: answered within the target, of all that were due; refused, cancelled and\n"
      "unfinished ones count as missed. p50 and p99 of requests count from the instant they were\n"
      "due. asked: the share of the device the policy owes the service (- where it promises "
      "none);\n"
      "got: what it was charged for. rest used: the kernel time of a service over the device time\n"
      "that the other left, so launch gaps, chunks and switches are what is missing to 100 %%.\n");
}

Status MainJob(Stage& stage, const Workload& workload) {
  const PolicyChoice first = BuiltInPolicies().front();
  FiguresTable table;
  if (Status status = Act(stage, "requests alone", workload, true, false, {first}, table);
      !status.ok()) {
    return status;
  }
  if (Status status = Act(stage, "update alone", workload, false, true, {first}, table);
      !status.ok()) {
    return status;
  }
  std::vector<PolicyChoice> policies = BuiltInPolicies();
  policies[1].label = "weighted_share 70/30";
  if (Status status = Act(stage, "", workload, true, true, policies, table); !status.ok()) {
    return status;
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
  if (Status status = Act(stage, "", workload, true, true, BuiltInPolicies(), table);
      !status.ok()) {
    return status;
  }
  std::printf("\n%s", table.Text().c_str());
  std::printf(
      "first come, first served on a device of its own: %s on time\n",
      FormatPart(OnTimeAlone(workload.turn, workload.target, workload.timetable.dropped)).c_str());
  return Status::Ok();
}

// Exit status of a program that inherits our output; 127 if it could not be started.
int RunProgram(const std::string& program, const std::string& endpoint) {
  std::string variable = "GPUSCHED_ENDPOINT=" + endpoint, name = program;
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.insert(environment.begin(), variable.data());
  environment.push_back(nullptr);
  char* arguments[] = {name.data(), nullptr};
  pid_t pid = -1;
  if (posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, environment.data()) != 0) {
    return 127;
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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
  const int status = RunProgram(program_folder + "/hello_job", (*daemon)->endpoint());
  if (status == 0) return Status::Ok();
  return Status(
      StatusCode::kInternal, "SAMPLE_FAILED",
      "hello_job ended with status " + std::to_string(status) + "; its own words stand above");
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
