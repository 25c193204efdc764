// A scenario: sessions, what each of them does, and the device they share; read from YAML.
//
//   duration: 60s                  # arrivals stop then; what is outstanding may still finish
//   warm_up: 1s                    # not counted
//   device: {costs: default, memory: 16GiB, preemption_bound: 1ms}
//   sessions:
//     - name: frames
//       share: {weight: 300, min: 60%, max: 80%, strict: no, priority: 10}
//       target: 20ms
//       memory: 2GiB
//       queues: 1
//       source: {kind: periodic, period: 16.67ms, work: 8ms, cv: 0.1}
//
// Kinds of source and their keys, beside what a job is made of (work, launches, longest_launch, cv,
// cuttable, or chain):
//   closed_loop  outstanding, think       periodic  period or rate, phase
//   poisson      rate                     gamma, weibull  rate, shape
//   trace        file, load               replay    file (HTA), every
//   steps        file, worker, unit       servegen  file, from      disb  file, results, real_time
// servegen and disb make a session of each client of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/limits.h"
#include "core/scheduler.h"
#include "device/virtual/costs.h"
#include "gpusched/policy/types.h"
#include "gpusched/status.h"
#include "sim/loaders.h"

namespace gpusched::sim {

struct SourceSpec {
  enum class Kind : std::uint8_t {
    kClosedLoop,
    kPeriodic,
    kPoisson,
    kGamma,
    kWeibull,
    kTrace,
    kReplay,
    kSteps,
    kWindows,  // rates that change, one client of ServeGen
  };
  Kind kind = Kind::kClosedLoop;
  int line = 0;  // of the file, for errors

  // What a job is made of; a trace brings its own work.
  std::shared_ptr<const Recipe> recipe;
  std::int64_t cv_ppb = 0;  // coefficient of variation of a job's work
  Duration longest_launch = std::chrono::milliseconds(2);  // of a trace's requests
  bool cuttable = true;

  std::uint32_t outstanding = 1;
  Duration think{0};
  Duration gap{0};     // between arrivals, on average
  Duration phase{-1};  // of a period; negative: drawn
  Fixed shape = kOne;
  std::string file;
  std::int64_t stretch_ppb = kOrdinaryScale;                       // of a trace's times
  std::shared_ptr<const std::vector<Request>> generated;           // in place of a trace
  std::shared_ptr<const std::vector<RecordedOperation>> recorded;  // of a replay
  std::shared_ptr<const std::vector<std::int64_t>> steps;
  Duration unit{0};  // of a step
  std::shared_ptr<const std::vector<RateWindow>> windows;
  Duration from{0};  // the first window's
};

struct SessionSpec {
  std::string name;
  Share share;
  std::uint64_t memory = 0;
  std::uint32_t queues = 1;
  bool skip_if_late = false;
  SourceSpec source;
};

struct Scenario {
  std::string name;
  Duration duration = std::chrono::seconds(10);
  Duration warm_up{0};
  Duration drain = std::chrono::seconds(10);  // for what is outstanding at the end
  device::Costs costs;
  core::DeviceTraits traits;
  core::Limits limits;
  std::uint64_t memory = std::uint64_t{16} << 30;
  std::vector<SessionSpec> sessions;
  std::vector<std::string> remarks;  // what a reader of the figures must know
};

// All errors at once, each with file and line. `name` stands for the file in messages; files that
// the scenario names are looked for beside `folder` and in the workloads' folder.
Result<Scenario> ParseScenario(const std::string& text, const std::string& name,
                               const std::string& folder);
// A file, or the name of one of our own: recommendation, game, team.
Result<Scenario> LoadScenario(const std::string& name_or_path);
std::vector<std::string> NamedScenarios();

// Time between arrivals divided by `load`, work and all else as it is: burstiness is kept.
void ScaleLoad(Scenario&, std::int64_t load_ppb);

// `work` as launches of at most `longest`, each in blocks of 10 us.
Recipe LaunchesOf(Duration work, Duration longest, bool cuttable);

}  // namespace gpusched::sim
