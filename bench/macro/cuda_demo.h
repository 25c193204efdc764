// The main job on the CUDA device without a GPU, for people.
#pragma once

#include "macro/demo.h"

namespace gpusched::bench {

// Prints as it goes; the first thing that kept it from finishing is its answer.
Status RunCudaSimDemo(const DemoOptions& options);

}  // namespace gpusched::bench
