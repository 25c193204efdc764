// The contract of every device, on a GPU: the same tests as on the stand-in.
#include "conformance/device_conformance.h"
#include "device/cuda/platform.h"
#include "device/polled_device.h"

namespace gpusched::device {
namespace {

std::unique_ptr<Device> OpenGpu(CompletionSink& sink, std::uint64_t memory_bytes) {
  auto devices = OpenCuda({.count = 1, .memory_bytes = memory_bytes},
                          [&](std::size_t, const DeviceInfo&) { return &sink; });
  if (!devices.ok()) return nullptr;
  return std::make_unique<PolledDevice>(std::move(devices->front()));
}

INSTANTIATE_TEST_SUITE_P(
    Gpu, DeviceConformance,
    ::testing::Values(Subject{
        .name = "gpu",
        .open = OpenGpu,
        .good = {.format = Image::Format::kPtx,
                 .bytes = ".version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry plain() { ret; }\n"
                          ".visible .entry touch(.param .u64 data, .param .u32 value) {\n"
                          "  .reg .b32 %r<2>;\n  .reg .b64 %rd<3>;\n"
                          "  ld.param.u64 %rd1, [data];\n  ld.param.u32 %r1, [value];\n"
                          "  cvta.to.global.u64 %rd2, %rd1;\n  st.global.u32 [%rd2], %r1;\n"
                          "  ret;\n}\n"},
        .broken = {.format = Image::Format::kPtx,
                   .bytes = ".version 7.0 .target sm_75 .address_size 64\n"
                            ".visible .entry plain( { ret; }\n"},
        .foreign = {.format = Image::Format::kVirtual,
                    .bytes = "kernel plain time_per_block=0\n"}}),
    [](const auto& subject) { return subject.param.name; });

}  // namespace
}  // namespace gpusched::device
