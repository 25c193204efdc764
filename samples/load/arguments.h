// The load program's command line: --name value, or --name alone for what is either so or not.
#pragma once

#include <gpusched/client.h>

#include <cstdint>
#include <string>

namespace load {

struct Arguments {
  std::string endpoint;
  gpusched::SessionOptions session{.name = "load"};
  gpusched::Duration kernel_time = std::chrono::milliseconds(2);
  std::uint32_t blocks = 100;
  bool uncuttable = false;
  double rate = 0;                // requests per second, Poisson; 0: closed loop
  std::uint32_t outstanding = 2;  // in the closed loop
  gpusched::Duration length = std::chrono::seconds(10);
  std::uint64_t seed = 1;
};

// Or what is wrong with it.
gpusched::Result<Arguments> Parse(int argc, char** argv);
const char* Usage();

}  // namespace load
