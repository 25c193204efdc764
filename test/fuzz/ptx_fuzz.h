// Feeds the PTX, fat binary and cubin readers with texts and bytes broken at random, by a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::test {

struct FuzzReport {
  std::uint64_t executions = 0;
  std::uint64_t accepted = 0;  // that a reader still took
  double slowest_ms = 0;
};

class PtxFuzz {
 public:
  // The folder is test/fixtures/ptx; every file in it is a start.
  static Result<PtxFuzz> Open(const std::string& folder);

  // Every start as it is, then so many broken ones.
  FuzzReport Run(std::uint64_t executions, std::uint64_t seed) const;

 private:
  std::vector<std::string> starts_;
};

}  // namespace gpusched::test
