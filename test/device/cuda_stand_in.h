// The CUDA device on the stand-in runtime, with the texts of small kernels, for tests.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/device_harness.h"
#include "device/backends.h"
#include "device/polled_device.h"
#include "support/fake_cudart/fake_cudart.h"

namespace gpusched::device {

inline Result<std::vector<std::unique_ptr<Device>>> OpenStandIns(CompletionSink& sink, int count,
                                                                 std::uint64_t memory_bytes = 0,
                                                                 const std::string& select = "") {
  DeviceOptions options;
  options.kind = "cuda";
  options.count = count;
  options.memory_bytes = memory_bytes;
  options.select = select;
  return OpenDevices(options, [&](std::size_t, const DeviceInfo&) { return &sink; });
}

inline std::unique_ptr<Device> CudaStandIn(CompletionSink& sink, std::uint64_t memory_bytes) {
  auto devices = OpenStandIns(sink, 1, memory_bytes);
  if (!devices.ok()) throw std::runtime_error(devices.status().ToString());
  return std::make_unique<PolledDevice>(std::move(devices->front()));
}

inline Image Ptx(const std::string& body, const std::string& target = "sm_75") {
  return {.format = Image::Format::kPtx,
          .bytes = ".version 7.0\n.target " + target + "\n.address_size 64\n" + body};
}

// Writes the value into the buffer's first word.
inline const char* const kTouch = R"(
.visible .entry touch(.param .u64 data, .param .u32 value) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";
inline const char* const kPlain = R"(
.visible .entry plain() {
  ret;
}
)";
// out[linear id of the block] = that id + 1, for grids of any shape.
inline const char* const kWho = R"(
.visible .entry who(.param .u64 out) {
  .reg .b32 %r<12>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ctaid.y;
  mov.u32 %r3, %ctaid.z;
  mov.u32 %r4, %nctaid.x;
  mov.u32 %r5, %nctaid.y;
  mad.lo.u32 %r6, %r3, %r5, %r2;
  mad.lo.u32 %r7, %r6, %r4, %r1;
  add.u32 %r8, %r7, 1;
  mul.wide.u32 %rd3, %r7, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r8;
  ret;
}
)";
// Writes where nobody has memory.
inline const char* const kWild = R"(
.visible .entry wild() {
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 64;
  st.global.u64 [%rd1], %rd1;
  ret;
}
)";

}  // namespace gpusched::device
