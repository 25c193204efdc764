// Prints one number for the histories of the first seeds: builds are compared by it.
#include <cstdio>
#include <cstdlib>

#include "sim/swarm.h"

int main(int argc, char** argv) {
  const unsigned long long seeds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100;
  unsigned long long all = 0;
  for (unsigned long long seed = 1; seed <= seeds; ++seed) {
    all = all * 0x100000001b3u ^ gpusched::sim::RunSeed(seed).hash;
  }
  std::printf("%016llx\n", all);
  return 0;
}
