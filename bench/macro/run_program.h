// Runs a sample beside a daemon, its output ours.
#pragma once

#include <string>

#include "gpusched/status.h"

namespace gpusched::bench {

// The program finds the daemon by GPUSCHED_ENDPOINT. INTERNAL (SAMPLE_FAILED) unless it ends with
// 0.
Status RunSample(const std::string& program, const std::string& endpoint);

}  // namespace gpusched::bench
