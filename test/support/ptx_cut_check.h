// Runs kernels whole and in random parts on the PTX interpreter, and compares every byte.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::test {

struct CutCheckResult {
  std::string kernel;
  int cuts = 0;
  std::string difference;  // what differed first, or went wrong; "" if nothing did
};

// Changes the rewritten text: to see that a wrong rewriting is noticed.
using Spoil = std::function<std::string(std::string)>;

// Each of the compiled fixtures' kernels with so many random partitions of its grid; the folder is
// test/fixtures/ptx/compiled.
Result<std::vector<CutCheckResult>> CheckCuts(const std::string& folder, int cuts,
                                              std::uint64_t seed, const Spoil& spoil = {});

// Puts `to` in place of every `from`.
std::string Replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace gpusched::test
