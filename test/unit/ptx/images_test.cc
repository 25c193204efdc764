// Fat binaries and cubins as the toolkit writes them, and as nobody should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "device/cuda/ptx/cubin.h"
#include "device/cuda/ptx/fatbin.h"
#include "device/cuda/ptx/module.h"

namespace gpusched::device::ptx {
namespace {

using testing::HasSubstr;

std::string Fixture(const std::string& name) {
  std::ifstream file(GPUSCHED_PTX_FIXTURES "/images/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class FatbinTest : public testing::TestWithParam<const char*> {};

TEST_P(FatbinTest, BothImagesComeOutPlain) {
  const Result<std::vector<FatbinImage>> images = ParseFatbin(Fixture(GetParam()));
  ASSERT_TRUE(images.ok()) << images.status().ToString();
  ASSERT_EQ(images->size(), 2u);
  const FatbinImage &elf = (*images)[0], &ptx = (*images)[1];
  EXPECT_EQ(elf.kind, FatbinImage::Kind::kElf);
  EXPECT_EQ(elf.sm, 75u);
  const Result<CubinInfo> cubin = ParseCubin(elf.bytes);
  ASSERT_TRUE(cubin.ok()) << cubin.status().ToString();
  EXPECT_EQ(cubin->sm, 75u);
  EXPECT_EQ(ptx.kind, FatbinImage::Kind::kPtx);
  const Result<Module> module = Module::Parse(ptx.bytes);
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  ASSERT_EQ(module->functions().size(), 1u);
  // The same kernel has the same parameters in both.
  const Function& kernel = module->functions()[0];
  ASSERT_EQ(cubin->kernels.size(), 1u);
  EXPECT_EQ(cubin->kernels[0].name, kernel.name);
  ASSERT_EQ(cubin->kernels[0].parameters.size(), kernel.parameters.size());
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    EXPECT_EQ(cubin->kernels[0].parameters[i].offset, kernel.parameters[i].offset);
    EXPECT_EQ(cubin->kernels[0].parameters[i].size, kernel.parameters[i].size);
  }
}
INSTANTIATE_TEST_SUITE_P(Packings, FatbinTest, testing::Values("zstd.fatbin", "lz4.fatbin"));

TEST(FatbinFaults, EveryCutIsNoticed) {
  const std::string whole = Fixture("zstd.fatbin");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_FALSE(ParseFatbin(whole.substr(0, size)).ok()) << size;
  }
}

TEST(FatbinFaults, ALieAboutItsSizeIsRefusedBeforeMemoryIsTaken) {
  std::string bytes = Fixture("lz4.fatbin");
  // The second entry: past the container's header and the whole first entry.
  std::uint32_t header = 0;
  std::uint64_t payload = 0;
  std::memcpy(&header, bytes.data() + 16 + 4, sizeof(header));
  std::memcpy(&payload, bytes.data() + 16 + 8, sizeof(payload));
  const std::size_t entry = 16 + header + payload;
  const std::uint64_t claimed = std::uint64_t{1} << 40;
  std::memcpy(bytes.data() + entry + 56, &claimed, sizeof(claimed));
  const auto images = ParseFatbin(bytes);
  ASSERT_FALSE(images.ok());
  EXPECT_THAT(images.status().message(), HasSubstr("more than it can"));
}

// nvcc was given: (int*, char, struct of 13 bytes, double, short), at most 128 threads, 400 bytes.
TEST(CubinTest, TheKernelsOwnDeclarationIsRead) {
  for (const auto& [name, sm, reserved] :
       {std::tuple{"sm_75.cubin", 75u, 0u}, {"sm_100.cubin", 100u, 1024u}}) {
    const Result<CubinInfo> info = ParseCubin(Fixture(name));
    ASSERT_TRUE(info.ok()) << info.status().ToString();
    EXPECT_EQ(info->sm, sm);
    ASSERT_EQ(info->kernels.size(), 1u);
    const CubinKernel& kernel = info->kernels[0];
    EXPECT_EQ(kernel.max_block_threads, 128u);
    EXPECT_EQ(kernel.static_shared_bytes, 400 + reserved);
    const std::uint32_t sizes[] = {8, 1, 13, 8, 2}, offsets[] = {0, 8, 9, 24, 32};
    ASSERT_EQ(kernel.parameters.size(), 5u);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(kernel.parameters[i].size, sizes[i]);
      EXPECT_EQ(kernel.parameters[i].offset, offsets[i]);
    }
  }
}

TEST(CubinFaults, EveryCutIsNoticedOrHarmless) {
  const std::string whole = Fixture("sm_75.cubin");
  // The section table is what a cubin cannot do without; it ends before the program headers.
  for (std::size_t size = 0; size < whole.size() / 2; ++size) {
    ASSERT_FALSE(ParseCubin(whole.substr(0, size)).ok()) << size;
  }
}

}  // namespace
}  // namespace gpusched::device::ptx
