// gpusched-fuzz-ptx FOLDER EXECUTIONS SEED: one line of figures, if it lives to tell.
#include <sys/resource.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "fuzz/ptx_fuzz.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: gpusched-fuzz-ptx FOLDER EXECUTIONS SEED\n";
    return 2;
  }
  const gpusched::Result<gpusched::test::PtxFuzz> fuzz = gpusched::test::PtxFuzz::Open(argv[1]);
  if (!fuzz.ok()) {
    std::cerr << fuzz.status().ToString() << '\n';
    return 1;
  }
  const gpusched::test::FuzzReport report =
      fuzz->Run(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::cout << "executions " << report.executions << " accepted " << report.accepted
            << " slowest_ms " << report.slowest_ms << " peak_mib " << usage.ru_maxrss / 1024
            << '\n';
  return 0;
}
