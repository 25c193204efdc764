// The contract of every device, on the CUDA device and the stand-in runtime.
#include "conformance/device_conformance.h"
#include "device/cuda_stand_in.h"

namespace gpusched::device {
namespace {

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance,
                         ::testing::Values(Subject{
                             .name = "cuda",
                             .open = CudaStandIn,
                             .good = Ptx(std::string(kPlain) + kTouch),
                             .broken = {.format = Image::Format::kPtx,
                                        .bytes = ".version 7.0 .target sm_75 .address_size 64\n"
                                                 ".visible .entry plain( { ret; }\n"},
                             .foreign = {.format = Image::Format::kVirtual,
                                         .bytes = "kernel plain time_per_block=0\n"}}),
                         [](const auto& subject) { return subject.param.name; });

}  // namespace
}  // namespace gpusched::device
