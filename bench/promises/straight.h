// A process that works straight on OpenCL, without gpusched: the other side of a comparison.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpusched/status.h"
#include "promises/child.h"
#include "support/spin_kernel.h"

namespace gpusched::bench {

// What the daemon sets for PoCL (device/opencl/platform.cc), for the other side of a comparison in
// which only the daemon is to make the difference.
std::vector<std::string> SettingsOfTheDaemon();

class Straight {
 public:
  // `before`: words in front of the program, as {"nice", "-n", "19"}. `environment`: NAME=value.
  // NOT_FOUND without an OpenCL driver.
  static Result<std::unique_ptr<Straight>> Start(std::vector<std::string> environment = {},
                                                 std::vector<std::string> before = {});

  // Milliseconds each, see straight_main.cc.
  Result<std::vector<double>> Spins(const Spin&, int count);
  Result<std::vector<double>> Paced(const Spin&, std::chrono::microseconds period, int count,
                                    std::uint64_t seed);
  Result<std::vector<double>> Chains(double rounds_per_us, int count);
  Result<std::vector<double>> Kernels();
  // 1 for each test of the file that passed, 0 for others. Any Status: the process may be gone.
  Result<std::vector<double>> Piglit(const std::string& path);
  // Endless launches until End, which tells how many a second there were.
  Status Begin(const Spin&);
  Result<double> End();

  // The rounds with which a launch of so many blocks takes `time` alone.
  Result<Spin> Calibrate(std::uint32_t blocks, std::chrono::nanoseconds time);

 private:
  explicit Straight(std::unique_ptr<Child> child) : child_(std::move(child)) {}
  Result<std::vector<double>> Ask(const std::string& line);
  Result<std::vector<double>> ReadNumbers();

  std::unique_ptr<Child> child_;
};

double MedianOf(std::vector<double> values);
// By nearest rank.
double PercentileOf(std::vector<double> values, double percent);

}  // namespace gpusched::bench
