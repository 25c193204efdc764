// Virtual modules: what a text means, what launches of it ask for, and every error at once.
#include "device/virtual/virtual_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "device/virtual/cost_model.h"
#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

template <typename T>
ValueArgument Bytes(T value) {
  ValueArgument bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

TEST(VirtualModule, ReadsKernelsInTheirOrder) {
  const auto module = ParseVirtualModule(
      "# Two kernels.\n"
      "\n"
      "kernel rank time_per_block=10us parameters=buffer,u32,local,bytes12,f64 scale=1\r\n"
      "  kernel\tupdate time_per_block=1.5ms cuttable=no fail=yes # endless\n");
  ASSERT_TRUE(module) << module.status().ToString();
  ASSERT_EQ(module->kernels.size(), 2u);
  const KernelInfo& rank = module->info.kernels[0];
  EXPECT_EQ(rank.name, "rank");
  EXPECT_TRUE(rank.cuttable);
  EXPECT_EQ(rank.whole_reason, "");
  ASSERT_EQ(rank.parameters.size(), 5u);
  EXPECT_EQ(rank.parameters[0].kind, Parameter::Kind::kBuffer);
  EXPECT_EQ(rank.parameters[0].size, 0u);
  EXPECT_EQ(rank.parameters[1].kind, Parameter::Kind::kValue);
  EXPECT_EQ(rank.parameters[1].size, 4u);
  EXPECT_EQ(rank.parameters[2].kind, Parameter::Kind::kLocal);
  EXPECT_EQ(rank.parameters[3].size, 12u);
  EXPECT_EQ(rank.parameters[4].size, 8u);
  EXPECT_EQ(module->kernels[0].time_per_block, 10us);
  EXPECT_EQ(module->kernels[0].scale, 1u);
  EXPECT_FALSE(module->kernels[0].fails);
  const KernelInfo& update = module->info.kernels[1];
  EXPECT_FALSE(update.cuttable);
  EXPECT_NE(update.whole_reason, "");
  EXPECT_TRUE(update.parameters.empty());
  EXPECT_EQ(module->kernels[1].time_per_block, 1'500us);
  EXPECT_TRUE(module->kernels[1].fails);
}

TEST(VirtualModule, TellsEveryErrorWithItsLine) {
  const auto module = ParseVirtualModule(
      "kernel a time_per_block=10us\n"
      "kernle b time_per_block=10us\n"
      "kernel a time_per_block=10us\n"
      "kernel c\n"
      "kernel d time_per_block=soon colour=red cuttable=maybe\n"
      "kernel e time_per_block=1us parameters=buffer,f32,u48 \n"
      "kernel f time_per_block=1us parameters=buffer,i32 scale=1\n"
      "kernel g time_per_block=1us time_per_block=2us scale=x\n"
      "kernel 9 time_per_block=1us\n"
      "kernel h time_per_block=1us parameters=bytes0\n"
      "kernel i time_per_block=1us parameters=u8,,u8\n"
      "kernel j time_per_block=2h\n"
      "kernel k time_per_block=1us cuttable\n");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(module.status().reason(), reason::kBadModule);
  const std::string& message = module.status().message();
  EXPECT_THAT(message, Not(HasSubstr("line 1:")));
  EXPECT_THAT(message, HasSubstr("line 2: expected 'kernel"));
  EXPECT_THAT(message, HasSubstr("line 3: kernel 'a' is named twice"));
  EXPECT_THAT(message, HasSubstr("line 4: kernel 'c' lacks time_per_block="));
  EXPECT_THAT(message, HasSubstr("line 5: time_per_block is a duration"));
  EXPECT_THAT(message, HasSubstr("line 5: unknown key 'colour'"));
  EXPECT_THAT(message, HasSubstr("line 5: cuttable is yes or no"));
  EXPECT_THAT(message, HasSubstr("line 6: unknown parameter kind 'u48'"));
  EXPECT_THAT(message, HasSubstr("line 7: scale=1 is not the index of an unsigned parameter"));
  EXPECT_THAT(message, HasSubstr("line 8: 'time_per_block' is given twice"));
  EXPECT_THAT(message, HasSubstr("line 8: scale is the index"));
  EXPECT_THAT(message, HasSubstr("line 9: a kernel's name"));
  EXPECT_THAT(message, HasSubstr("line 10: unknown parameter kind 'bytes0'"));
  EXPECT_THAT(message, HasSubstr("line 11: a comma in parameters"));
  EXPECT_THAT(message, HasSubstr("line 12: time_per_block is a duration of at most 1h"));
  EXPECT_THAT(message, HasSubstr("line 13: expected key=value, found 'cuttable'"));
}

TEST(VirtualModule, ShowsNoMoreErrorsThanOneCanRead) {
  std::string text;
  for (int line = 0; line < 1'000; ++line) text += "nonsense\n";
  const auto module = ParseVirtualModule(text);
  ASSERT_FALSE(module);
  EXPECT_THAT(module.status().message(), HasSubstr("and 980 more"));
  EXPECT_LT(module.status().message().size(), 4'096u);
}

TEST(VirtualModule, AModuleHasAtLeastOneKernelAndABoundedText) {
  EXPECT_EQ(ParseVirtualModule("").status().reason(), reason::kBadModule);
  EXPECT_EQ(ParseVirtualModule("# only words\n").status().reason(), reason::kBadModule);
  EXPECT_EQ(ParseVirtualModule(std::string(2 << 20, ' ')).status().reason(), reason::kBadModule);
  EXPECT_EQ(ParseVirtualModule(std::string("kernel \0\xff", 9)).status().reason(),
            reason::kBadModule);
}

TEST(LaunchWork, IsBlocksTimesTimeTimesScale) {
  const VirtualKernel plain{.time_per_block = 10us};
  EXPECT_EQ(LaunchWork(plain, {}, 1), 10us);
  EXPECT_EQ(LaunchWork(plain, {}, 800), 8ms);
  EXPECT_EQ(LaunchWork(plain, {}, 0), 0us);
  const VirtualKernel scaled{.time_per_block = 10us, .scale = 1};
  EXPECT_EQ(LaunchWork(scaled, {BufferArgument{}, Bytes(std::uint32_t{7})}, 3), 210us);
  EXPECT_EQ(LaunchWork(scaled, {BufferArgument{}, Bytes(std::uint8_t{200})}, 1), 2ms);
  EXPECT_EQ(LaunchWork(scaled, {BufferArgument{}, Bytes(std::uint64_t{0})}, 3), 0us);
}

TEST(LaunchWork, SaturatesAtAnHour) {
  const VirtualKernel kernel{.time_per_block = 1h, .scale = 0};
  EXPECT_EQ(LaunchWork(kernel, {Bytes(UINT64_MAX)}, UINT64_MAX), kLongestWork);
  EXPECT_EQ(LaunchWork(kernel, {Bytes(std::uint64_t{1})}, 2), kLongestWork);
  EXPECT_EQ(LaunchWork(kernel, {Bytes(std::uint64_t{0})}, UINT64_MAX), 0us);
}

}  // namespace
}  // namespace gpusched::device
