// Lines to the program and numbers back.
#include "promises/straight.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace gpusched::bench {
namespace {

// A build takes a second, more beside others; nothing asked for takes as long.
constexpr std::chrono::seconds kAnswerWithin{60};
constexpr int kCalibrations = 4, kCalibrationLaunches = 9;
constexpr double kCalibrationPercent = 25;

std::string Words(const Spin& spin) {
  return std::to_string(spin.blocks) + " " + std::to_string(spin.rounds);
}

}  // namespace

std::vector<std::string> SettingsOfTheDaemon() {
  std::vector<std::string> settings{"POCL_WORK_GROUP_SPECIALIZATION=0"};
  cpu_set_t allowed;
  const bool has_every_processor = sched_getaffinity(0, sizeof allowed, &allowed) == 0 &&
                                   CPU_COUNT(&allowed) >= sysconf(_SC_NPROCESSORS_ONLN);
  if (has_every_processor) settings.emplace_back("POCL_AFFINITY=1");
  return settings;
}

double PercentileOf(std::vector<double> values, double percent) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(percent / 100 * static_cast<double>(values.size()) - 1e-9);
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

double MedianOf(std::vector<double> values) { return PercentileOf(std::move(values), 50); }

Result<std::unique_ptr<Straight>> Straight::Start(std::vector<std::string> environment,
                                                  std::vector<std::string> before) {
  std::vector<std::string> command{"/usr/bin/env"};
  std::move(environment.begin(), environment.end(), std::back_inserter(command));
  std::move(before.begin(), before.end(), std::back_inserter(command));
  command.push_back(ProgramPath("gpusched-straight"));
  Result<std::unique_ptr<Child>> child =
      Child::Start(std::move(command), Child::Errors::kWithOutput);
  if (!child.ok()) return child.status();
  auto straight = std::unique_ptr<Straight>(new Straight(*std::move(child)));
  const Result<std::vector<double>> ready = straight->ReadNumbers();
  if (!ready.ok()) return ready.status();
  return straight;
}

Result<std::vector<double>> Straight::ReadNumbers() {
  std::vector<double> numbers;
  for (;;) {
    const Result<std::string> line = child_->ReadLine(kAnswerWithin);
    if (!line.ok()) return line.status();
    if (*line == "done") return numbers;
    char* end = nullptr;
    const double number = std::strtod(line->c_str(), &end);
    if (end == line->c_str() || *end != '\0') {
      const bool lacks = line->find("pocl-opencl-icd") != std::string::npos;
      return Status(lacks ? StatusCode::kNotFound : StatusCode::kInternal, "STRAIGHT_FAILED",
                    *line);
    }
    numbers.push_back(number);
  }
}

Result<std::vector<double>> Straight::Ask(const std::string& line) {
  if (Status status = child_->WriteLine(line); !status.ok()) return status;
  return ReadNumbers();
}

Result<std::vector<double>> Straight::Spins(const Spin& spin, int count) {
  return Ask("spin " + Words(spin) + " " + std::to_string(count));
}

Result<std::vector<double>> Straight::Paced(const Spin& spin, std::chrono::microseconds period,
                                            int count, std::uint64_t seed) {
  return Ask("paced " + Words(spin) + " " + std::to_string(period.count()) + " " +
             std::to_string(count) + " " + std::to_string(seed));
}

Result<std::vector<double>> Straight::Chains(double rounds_per_us, int count) {
  return Ask("chain " + std::to_string(rounds_per_us) + " " + std::to_string(count));
}

Result<std::vector<double>> Straight::Kernels() { return Ask("kernels"); }

Result<std::vector<double>> Straight::Piglit(const std::string& path) {
  return Ask("piglit " + path);
}

Status Straight::Begin(const Spin& spin) { return Ask("begin " + Words(spin)).status(); }

Result<double> Straight::End() {
  const Result<std::vector<double>> answer = Ask("end");
  if (!answer.ok()) return answer.status();
  return answer->empty() ? 0 : answer->front();
}

Result<Spin> Straight::Calibrate(std::uint32_t blocks, std::chrono::nanoseconds time) {
  Spin spin{.blocks = blocks, .rounds = 1'000};
  const double wanted = static_cast<double>(time.count()) / 1e6;
  for (int i = 0; i < kCalibrations; ++i) {
    const Result<std::vector<double>> took = Spins(spin, kCalibrationLaunches);
    if (!took.ok()) return took.status();
    // A machine that does other things besides makes launches longer, never shorter.
    const double alone = PercentileOf(*took, kCalibrationPercent);
    const double rounds = spin.rounds * wanted / std::max(alone, 0.001);
    spin.rounds = static_cast<std::uint32_t>(std::clamp(rounds, 1.0, 1e9));
  }
  return spin;
}

}  // namespace gpusched::bench
