// Plays a story on the CUDA device while calls of the runtime fail, and counts what went wrong.
#pragma once

#include <cstdint>
#include <string>

namespace gpusched::test {

struct FaultTally {
  std::uint64_t stories = 0;
  std::uint64_t orders = 0;      // that were to be answered once
  std::uint64_t unanswered = 0;  // within the deadline
  std::uint64_t doubled = 0;
  std::uint64_t wrong_results = 0;  // of stories in which every command is said to be done
  std::uint64_t wrong_losses = 0;   // lost twice, before the last answer, or without naming anyone
  std::uint64_t failed = 0, lost = 0;  // completions: to see that faults did strike
  std::string first;                   // the first thing that went wrong, in words

  std::uint64_t wrong() const { return unanswered + doubled + wrong_results + wrong_losses; }
};

// The n-th call after the device was opened fails, once and then again and again, for n from 1 to
// `most`, with errors of each kind.
FaultTally CheckCudaFaults(std::uint64_t most);

}  // namespace gpusched::test
