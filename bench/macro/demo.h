// The demo on the virtual device: services alone, together under three policies, a real trace, and
// at last a real kernel.
#pragma once

#include <chrono>
#include <string>

#include "gpusched/status.h"

namespace gpusched::bench {

struct DemoOptions {
  // Of each measured window.
  std::chrono::seconds length{20};
  // Of each window of the default trace run, at most `length`.
  std::chrono::seconds trace_length{10};
  // "": the built-in Poisson requests.
  std::string trace;
  // Where hello_job lies.
  std::string program_folder;
};

// Prints as it goes; the first thing that kept it from finishing is its answer.
Status RunDemo(const DemoOptions& options);

}  // namespace gpusched::bench
