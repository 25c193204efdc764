// Runs OpenCL kernels whole, straight on the driver, and in random parts on the device under test,
// and compares every byte of every argument.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"
#include "gpusched/status.h"

namespace gpusched::test {

// One construct of the language that might tell a part from the whole.
struct CutCase {
  struct Argument {
    enum class Kind : std::uint8_t { kBuffer, kValue, kLocal };
    Kind kind = Kind::kBuffer;
    std::uint64_t bytes = 0;  // of a buffer, filled at random, or of local memory
    std::uint32_t value = 0;  // of a value
    bool zeros = false;       // a buffer begins as zeros instead
  };
  std::string construct;  // in words, unique
  std::string source;     // its kernel is called k
  device::Dim3 grid, block;
  device::Dim3 offset{0, 0, 0};
  std::vector<Argument> arguments = {};
};

const std::vector<CutCase>& CutCases();

struct CutCheckOutcome {
  std::string construct;
  int cuts = 0;
  std::string difference;  // what differed first, or went wrong; "" if nothing did
  bool unsteady = false;   // two whole launches differ: says nothing
};

// Each case cut at random into 2 to 12 parts, `cuts` times. NOT_FOUND without an OpenCL driver.
Result<std::vector<CutCheckOutcome>> CheckOpenClCuts(const std::vector<CutCase>& cases, int cuts,
                                                     std::uint64_t seed,
                                                     const std::string& cache_dir);

}  // namespace gpusched::test
