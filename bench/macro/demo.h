// The demo's acts: services alone, together under three policies, a real trace, a real kernel.
#pragma once

#include <chrono>
#include <string>

#include "gpusched/status.h"

namespace gpusched::bench {

struct DemoOptions {
  std::chrono::seconds length{20};        // of each measured window
  std::chrono::seconds trace_length{10};  // of each window of the default trace run
  std::string trace;                      // "": the built-in Poisson requests
  std::string program_folder;             // where hello_job lies
};

// Prints as it goes; the first thing that kept it from finishing is its answer.
Status RunDemo(const DemoOptions& options);

}  // namespace gpusched::bench
