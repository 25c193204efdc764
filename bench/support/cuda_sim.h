// The main job on the CUDA device and its stand-in runtime: small kernels in PTX that really
// compute, through the daemon built for it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/beside_update.h"
#include "support/work.h"

namespace gpusched::bench {

struct CudaSimRun {
  std::vector<PolicyChoice> policies;
  std::vector<WindowFigures> windows;  // of each policy
  BesideUpdate::Results results;
  std::string device;  // its name
  double requests_per_second = 0;
  Duration request{0}, update{0};  // what the kernels of a job take alone
};

// Requests for three tenths of the device, beside an endless update, under each policy in turn.
// `program` is gpuschedd-cuda-sim; `tick` is called about once a second.
Result<CudaSimRun> RunCudaSim(
    const std::string& program, std::chrono::seconds length,
    const std::function<void(const PolicyChoice&, Duration into)>& tick = nullptr);

}  // namespace gpusched::bench
