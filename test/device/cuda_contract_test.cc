// The contract of every device, on the CUDA device: here with the stand-in runtime;
// bench/gpu/run.sh links the real one.
#include "conformance/device_conformance.h"
#include "device/cuda/platform.h"
#include "device/cuda_stand_in.h"

namespace gpusched::device {
namespace {

// Null, so that the tests are skipped, where there is no GPU.
std::unique_ptr<Device> OpenFirst(CompletionSink& sink, std::uint64_t memory_bytes) {
  auto devices = OpenCuda({.count = 1, .memory_bytes = memory_bytes},
                          [&](std::size_t, const DeviceInfo&) { return &sink; });
  if (devices.status().code() == StatusCode::kUnavailable) return nullptr;
  if (!devices.ok()) throw std::runtime_error(devices.status().ToString());
  return std::make_unique<PolledDevice>(std::move(devices->front()));
}

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance,
                         ::testing::Values(Subject{
                             .name = "cuda",
                             .open = OpenFirst,
                             .good = Ptx(std::string(kPlain) + kTouch),
                             .broken = {.format = Image::Format::kPtx,
                                        .bytes = ".version 7.0 .target sm_75 .address_size 64\n"
                                                 ".visible .entry plain( { ret; }\n"},
                             .foreign = {.format = Image::Format::kVirtual,
                                         .bytes = "kernel plain time_per_block=0\n"}}),
                         [](const auto& subject) { return subject.param.name; });

}  // namespace
}  // namespace gpusched::device
