// A module loaded into the driver: its kernels, how each is launched, and what the client is told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/cuda/context_health.h"
#include "device/cuda/expected_time.h"
#include "device/cuda/handle.h"
#include "device/cuda/image_choice.h"
#include "device/cuda/known_waves.h"
#include "device/device.h"
#include "gpusched/status.h"

namespace gpusched::device {

struct CudaKernel {
  cudaKernel_t handle = nullptr;              // the library's
  std::vector<std::uint32_t> offsets, sizes;  // of its own parameters
  std::uint32_t parameter_bytes = 0;
  // It takes a ptx::BoxParameter behind them, at box_offset, with every launch.
  bool boxed = false;
  std::uint32_t box_offset = 0;
  std::uint64_t dynamic_limit = 0;  // bytes of shared memory a launch may ask for
  // The executor's own.
  ExpectedTime time;  // per block
  KnownWaves waves;
};

struct CudaModule {
  LibraryHandle library;
  std::vector<CudaKernel> kernels;  // as info.kernels
  ModuleInfo info;                  // in the image's order
};

// What a module must fit.
struct ModuleTarget {
  std::string uuid;
  Architecture architecture;
  std::uint64_t block_shared_bytes = 0;  // the most that one block can be given
};

// Tries the usable images, best first, and takes the first that the driver takes. PTX is rewritten
// before it is loaded, so that the driver compiles one text only, and original and rewritten never
// stand side by side. Takes seconds for large modules: never on the executor's time.
//   INVALID_ARGUMENT (NO_USABLE_IMAGE)  with a word on each image
//   INVALID_ARGUMENT (BAD_MODULE, BUILD_FAILED)
Result<CudaModule> LoadCudaModule(const std::vector<Image>& images, const ModuleTarget& target,
                                  ContextHealth& health);

}  // namespace gpusched::device
