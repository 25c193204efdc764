// Which image of a module the CUDA device takes, and how it refuses those it cannot.
#include <dlfcn.h>

#include <fstream>
#include <iterator>

#include "conformance/expect_refused.h"
#include "device/cuda/image_choice.h"
#include "device/cuda/plain_name.h"
#include "device/cuda_stand_in.h"
#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

using ::testing::HasSubstr;

std::string Fixture(const std::string& name) {
  std::ifstream file(std::string(GPUSCHED_PTX_FIXTURES) + "/" + name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}
Image FixtureImage(Image::Format format, const std::string& name) {
  return {.format = format, .bytes = Fixture(name)};
}

class CudaImages : public ::testing::Test {
 protected:
  static constexpr SessionId kSession{.slot = 0, .serial = 1};

  void SetUp() override { Use(test::DefaultDriver()); }
  void Use(test::FakeDriver driver) {
    orders_.reset();
    device_.reset();
    test::InstallDriver(std::move(driver));
    device_ = CudaStandIn(sink_, 0);
    orders_ = std::make_unique<Orders>(*device_, sink_);
    ASSERT_TRUE(device_->OpenSession(kSession, {.memory_bytes = 1 << 20}).ok());
  }
  Prepared Load(std::vector<Image> images) {
    return orders_->Carry(
        LoadModule{.session = kSession, .module = ++modules_, .images = std::move(images)});
  }

  RecordingSink sink_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Orders> orders_;
  ModuleId modules_ = 0;
};

std::vector<std::string> Order(const std::vector<Image>& images, std::uint32_t sm) {
  std::vector<std::string> order;
  for (const UsableImage& image : ChooseImages(images, {.sm = sm}).usable) {
    order.push_back((image.kind == UsableImage::Kind::kPtx ? "ptx " : "elf ") +
                    std::to_string(image.sm) + (image.exact ? "a" : ""));
  }
  return order;
}

TEST(CudaImageChoice, TakesTheHighestPtxNotAboveTheDeviceAndMachineCodeLast) {
  const std::vector<Image> images = {
      Ptx(kPlain, "sm_75"), FixtureImage(Image::Format::kCubin, "images/sm_75.cubin"),
      Ptx(kPlain, "sm_90"), Ptx(kPlain, "sm_90a"), Ptx(kPlain, "sm_120")};
  EXPECT_THAT(Order(images, 90), ::testing::ElementsAre("ptx 90a", "ptx 90", "ptx 75"));
  EXPECT_THAT(Order(images, 89), ::testing::ElementsAre("ptx 75"));
  EXPECT_THAT(Order(images, 100), ::testing::ElementsAre("ptx 90", "ptx 75"));
  EXPECT_THAT(Order(images, 75), ::testing::ElementsAre("ptx 75", "elf 75"));
}

TEST(CudaImageChoice, SaysWhyEachImageIsPassedOver) {
  const ImageChoice choice =
      ChooseImages({Ptx(kPlain, "sm_120"),
                    FixtureImage(Image::Format::kCubin, "images/sm_100.cubin"),
                    {.format = Image::Format::kOpenClC, .bytes = "kernel void x() {}"}},
                   {.sm = 90});
  EXPECT_TRUE(choice.usable.empty());
  EXPECT_THAT(choice.passed_over, HasSubstr("image 1 (PTX for sm_120) is for another GPU"));
  EXPECT_THAT(choice.passed_over, HasSubstr("image 2 (a cubin for sm_100) is machine code"));
  EXPECT_THAT(choice.passed_over, HasSubstr("image 3 is OpenCL C"));
}

TEST(CudaImageChoice, FindsPtxAndMachineCodeInAFatBinary) {
  for (const char* name : {"images/lz4.fatbin", "images/zstd.fatbin"}) {
    const auto order = Order({FixtureImage(Image::Format::kFatbin, name)}, 75);
    EXPECT_FALSE(order.empty()) << name;
  }
}

TEST(CudaPlainName, IsTheNameInTheSource) {
  EXPECT_EQ(PlainName("_Z5saxpyfPKfPf"), "saxpy");
  EXPECT_EQ(PlainName("_Z6LinearIfEvPT_PKS0_S0_i"), "Linear<float>");
  EXPECT_EQ(PlainName("saxpy"), "");
  EXPECT_EQ(PlainName("_Z"), "");
}

TEST_F(CudaImages, KernelsGoByMangledAndByPlainName) {
  const Prepared loaded = Load({FixtureImage(Image::Format::kPtx, "compiled/functions.ptx")});
  ASSERT_TRUE(loaded.status.ok()) << loaded.status.ToString();
  std::vector<std::string> names;
  for (const KernelInfo& kernel : loaded.module.kernels) names.push_back(kernel.name);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"_Z10CallsWherePi", "CallsWhere"}));
}

TEST_F(CudaImages, AQueueOfWorkIsCutAndSaysWhatThatMeans) {
  const Prepared loaded = Load({FixtureImage(Image::Format::kPtx, "compiled/functions.ptx")});
  ASSERT_TRUE(loaded.status.ok()) << loaded.status.ToString();
  EXPECT_THAT(loaded.module.build_log, HasSubstr("kernel '_Z5QueuePiS_i': "));
}

TEST_F(CudaImages, WhatMustNotBeCutRunsWholeAndSaysWhy) {
  const Prepared loaded = Load({FixtureImage(Image::Format::kPtx, "unsafe/spin_plain.ptx")});
  ASSERT_TRUE(loaded.status.ok()) << loaded.status.ToString();
  EXPECT_FALSE(loaded.module.kernels[0].cuttable);
  EXPECT_FALSE(loaded.module.kernels[0].whole_reason.empty());
}

TEST_F(CudaImages, MachineCodeRunsWholeAndTakesNumbersForBuffers) {
  test::FakeDriver driver = test::DefaultDriver();
  driver.gpus = {driver.gpus[1]};
  Use(driver);
  const Prepared loaded = Load({FixtureImage(Image::Format::kCubin, "images/sm_75.cubin")});
  ASSERT_TRUE(loaded.status.ok()) << loaded.status.ToString();
  EXPECT_FALSE(loaded.module.kernels[0].cuttable);
  EXPECT_THAT(loaded.module.kernels[0].whole_reason, HasSubstr("without PTX"));
}

TEST_F(CudaImages, ANumberAsWideAsAnAddressIsToldFromOne) {
  const Prepared loaded = Load({Ptx(R"(
.visible .entry k(.param .u64 data, .param .u64 count, .param .u64 .ptr .global .align 4 marked) {
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [data];
  ld.param.u64 %rd2, [count];
  cvta.to.global.u64 %rd3, %rd1;
  st.global.u64 [%rd3], %rd2;
  ret;
}
)")});
  ASSERT_TRUE(loaded.status.ok()) << loaded.status.ToString();
  const auto& parameters = loaded.module.kernels[0].parameters;
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_EQ(parameters[0].size, 0u);  // a buffer and nothing else
  EXPECT_EQ(parameters[1].size, 8u);  // or a number
  EXPECT_EQ(parameters[2].size, 0u);
}

TEST_F(CudaImages, PtxNewerThanTheDriverIsRefusedAndAnOlderImageTaken) {
  const Image newer = {
      .format = Image::Format::kPtx,
      .bytes = ".version 42.0\n.target sm_75\n.address_size 64\n" + std::string(kPlain)};
  const Prepared refused = Load({newer});
  ExpectRefused(refused.status, StatusCode::kInvalidArgument, reason::kBadModule,
                "newer than the driver");
  const Prepared both = Load({newer, Ptx(kPlain, "sm_70")});
  EXPECT_TRUE(both.status.ok()) << both.status.ToString();
  EXPECT_THAT(both.module.build_log, HasSubstr("newer than the driver"));
}

TEST_F(CudaImages, WrongArchitectureIsNamed) {
  ExpectRefused(Load({Ptx(kPlain, "sm_100")}).status, StatusCode::kInvalidArgument,
                reason::kNoUsableImage, "sm_90");
  ExpectRefused(Load({FixtureImage(Image::Format::kCubin, "images/sm_75.cubin")}).status,
                StatusCode::kInvalidArgument, reason::kNoUsableImage, "machine code");
}

TEST_F(CudaImages, TruncatedAndBrokenImagesAreRefused) {
  const std::string cubin = Fixture("images/sm_75.cubin"), fatbin = Fixture("images/zstd.fatbin"),
                    text = Fixture("compiled/grids.ptx");
  for (const std::size_t part : {0u, 1u, 3u, 10u, 40u, 90u, 99u}) {
    for (const Image& image :
         {Image{Image::Format::kCubin, cubin.substr(0, cubin.size() * part / 100)},
          Image{Image::Format::kFatbin, fatbin.substr(0, fatbin.size() * part / 100)},
          Image{Image::Format::kCubin, std::string(cubin.size(), '\x5A')},
          Image{Image::Format::kFatbin, std::string(200, '\0')}}) {
      const Status status = Load({image}).status;
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    }
  }
  // Text may be cut between two kernels and still be one.
  const Status status = Load({{Image::Format::kPtx, text.substr(0, text.find("ret;"))}}).status;
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
  EXPECT_EQ(Load({{Image::Format::kPtx, "hello"}}).status.reason(), reason::kBadModule);
}

// Found without the device's own search, so that a fault of that is no reason to skip.
bool CompilerIsInstalled() {
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    if (void* const library = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {
      dlclose(library);
      return true;
    }
  }
  return false;
}

TEST_F(CudaImages, CudaSourceIsCompiledWhereTheCompilerIs) {
  const Prepared loaded = Load({{Image::Format::kCudaC,
                                 "extern \"C\" __global__ void fill(int* out, int value) {\n"
                                 "  out[blockIdx.x * blockDim.x + threadIdx.x] = value;\n}\n"}});
  if (!CompilerIsInstalled()) {
    EXPECT_EQ(loaded.status.reason(), reason::kNoUsableImage);
    GTEST_SKIP() << "no CUDA compiler (libnvrtc) on this machine";
  }
  ASSERT_TRUE(loaded.status.ok()) << loaded.status.ToString();
  ASSERT_EQ(loaded.module.kernels.size(), 1u);
  EXPECT_EQ(loaded.module.kernels[0].name, "fill");
  EXPECT_TRUE(loaded.module.kernels[0].cuttable) << loaded.module.kernels[0].whole_reason;
  const Status broken = Load({{Image::Format::kCudaC, "__global__ void x() { y; }"}}).status;
  ExpectRefused(broken, StatusCode::kInvalidArgument, reason::kBuildFailed, "module.cu(1)");
}

}  // namespace
}  // namespace gpusched::device
