// Plays the stories of failing CUDA calls on the stand-in, and prints a figure a line.
#include <cstdio>
#include <cstdlib>

#include "support/cuda_faults.h"

int main(int argc, char** argv) {
  const std::uint64_t most = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200;
  const gpusched::test::FaultTally tally = gpusched::test::CheckCudaFaults(most);
  const struct {
    const char* name;
    std::uint64_t value;
  } figures[] = {{"most", most},
                 {"stories", tally.stories},
                 {"orders", tally.orders},
                 {"unanswered", tally.unanswered},
                 {"doubled", tally.doubled},
                 {"wrong_results", tally.wrong_results},
                 {"wrong_losses", tally.wrong_losses},
                 {"failed", tally.failed},
                 {"lost", tally.lost}};
  for (const auto& figure : figures) {
    std::printf("%s %llu\n", figure.name, static_cast<unsigned long long>(figure.value));
  }
  if (!tally.first.empty()) std::printf("first %s\n", tally.first.c_str());
  return 0;
}
