// Plays the stories of failing CUDA calls on the stand-in, and prints a figure a line.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "support/cuda_faults.h"

int main(int argc, char** argv) {
  std::uint64_t most = 200;
  const char* const given = argc > 1 ? argv[1] : "200";
  const char* const end = given + std::strlen(given);
  const auto [after, error] = std::from_chars(given, end, most);
  if (argc > 2 || error != std::errc() || after != end || most < 1 || most > 100'000) {
    std::fprintf(stderr, "usage: gpusched-cuda-faults [CALLS], from 1 to 100000 (200)\n");
    return 2;
  }
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
