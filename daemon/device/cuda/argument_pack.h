// A launch's arguments laid out for the driver: one pointer each, the box behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "device/cuda/cuda_module.h"
#include "device/cuda/ptx/boxes.h"
#include "device/device.h"
#include "gpusched/status.h"

namespace gpusched::device {

// Reused from launch to launch, so that packing allocates nothing. The executor's own.
class ArgumentPack {
 public:
  // Where a buffer's bytes lie, and how many there are.
  struct Place {
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
  };
  using FindPlace = std::function<Result<Place>(BufferId)>;

  // Everything but the box. Checks number, kinds, sizes and ranges against the kernel's layout, so
  // that nothing that would corrupt the context reaches the driver.
  Status Fill(const CudaKernel& kernel, const KernelInfo& info,
              const std::vector<Argument>& arguments, std::uint64_t alignment,
              const FindPlace& place);
  // What a launch of this box passes; valid until the next call.
  void** WithBox(const CudaKernel& kernel, const ptx::BoxParameter& box);

 private:
  Status Put(const CudaKernel& kernel, const KernelInfo& info, std::size_t index,
             const Argument& argument, std::uint64_t alignment, const FindPlace& place);

  std::vector<std::byte> bytes_;
  std::vector<void*> pointers_;
};

}  // namespace gpusched::device
