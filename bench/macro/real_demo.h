// The demos with kernels that compute, on OpenCL: the main job, a game, a team.
#pragma once

#include "macro/demo.h"

namespace gpusched::bench {

// Each prints as it goes; the first thing that kept it from finishing is its answer, a wrong result
// too. UNAVAILABLE where there is no OpenCL platform: RealStage::LacksPlatform tells.
Status RunRealMainJob(const DemoOptions& options);
Status RunGameDemo(const DemoOptions& options);
Status RunTeamDemo(const DemoOptions& options);

}  // namespace gpusched::bench
