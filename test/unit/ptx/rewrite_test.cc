// Which kernels may be cut, what the rewritten text looks like, and what one kernel takes along.
#include "device/cuda/ptx/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/ptx_refusals.h"

namespace gpusched::device::ptx {
namespace {

using testing::HasSubstr;
using testing::Not;

Result<Rewritten> Of(const std::string& text) {
  return Rewrite(".version 7.0\n.target sm_75\n.address_size 64\n" + text);
}

TEST(RewriteTest, ABlockIdComesFromTheBox) {
  const Result<Rewritten> rewritten =
      Of(".entry k(.param .u64 p) { .reg .b32 %r<3>; mov.u32 %r1, %ctaid.x; mov.u32 %r2, "
         "%nctaid.y; ret; }");
  ASSERT_TRUE(rewritten.ok()) << rewritten.status().ToString();
  ASSERT_EQ(rewritten->kernels.size(), 1u);
  const RewrittenKernel& kernel = rewritten->kernels[0];
  EXPECT_TRUE(kernel.boxed);
  EXPECT_EQ(kernel.verdict.cut, Cut::kFreely);
  EXPECT_EQ(kernel.parameter_bytes, 8u);
  EXPECT_EQ(kernel.box_offset, 16u);
  EXPECT_EQ(kernel.added_shared_bytes, 0u);
  EXPECT_THAT(rewritten->text, HasSubstr("mov.u32 %r1, %gpusched_ctaid_x;"));
  EXPECT_THAT(rewritten->text, Not(HasSubstr("%nctaid")));
}

TEST(RewriteTest, AKernelWithoutAListGetsOne) {
  const Result<Rewritten> rewritten = Of(".entry k { ret; }");
  ASSERT_TRUE(rewritten.ok()) << rewritten.status().ToString();
  EXPECT_TRUE(rewritten->kernels[0].boxed);
  EXPECT_EQ(rewritten->kernels[0].box_offset, 0u);
}

TEST(RewriteTest, HalfWordsAreConverted) {
  const Result<Rewritten> rewritten =
      Of(".entry k() { .reg .b16 %rs<2>; mov.u16 %rs1, %ctaid.z; ret; }");
  ASSERT_TRUE(rewritten.ok()) << rewritten.status().ToString();
  EXPECT_THAT(rewritten->text, HasSubstr("cvt.u16.u32 %rs1, %gpusched_ctaid_z;"));
}

TEST(RewriteTest, ANameOfOursIsRefused) {
  EXPECT_FALSE(Of(".entry __gpusched_box() { ret; }").ok());
}

TEST(RewriteTest, KernelsThatShareAFunctionStayTogether) {
  const Result<Rewritten> rewritten = Of(
      ".func where() { .reg .b32 %r<2>; mov.u32 %r1, %ctaid.x; ret; }\n"
      ".entry a() { call where; ret; }\n"
      ".entry b() { .reg .b32 %r<5>; mov.v4.u32 {%r1, %r2, %r3, %r4}, %ctaid; call where; ret; }\n"
      ".entry c() { ret; }\n");
  ASSERT_TRUE(rewritten.ok()) << rewritten.status().ToString();
  EXPECT_FALSE(rewritten->kernels[0].boxed);
  EXPECT_THAT(rewritten->kernels[0].verdict.reason, HasSubstr("shares 'where'"));
  EXPECT_FALSE(rewritten->kernels[1].boxed);
  EXPECT_TRUE(rewritten->kernels[2].boxed);
}

TEST(RewriteTest, AQueueOfWorkIsNotBounded) {
  const Result<Rewritten> rewritten =
      Of(".entry k(.param .u64 next) { .reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .pred %p<2>;\n"
         "ld.param.u64 %rd1, [next];\n$more:\natom.global.add.u32 %r1, [%rd1], 1;\n"
         "setp.lt.u32 %p1, %r1, 100;\n@%p1 bra $more;\nret; }");
  ASSERT_TRUE(rewritten.ok()) << rewritten.status().ToString();
  EXPECT_EQ(rewritten->kernels[0].verdict.cut, Cut::kUnbounded);
  EXPECT_THAT(rewritten->kernels[0].verdict.reason, HasSubstr("line 9"));
}

TEST(RewriteTest, ARetryOfOnesOwnIsFree) {
  const Result<Rewritten> rewritten = Of(
      ".entry k(.param .u64 to) { .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p<2>;\n"
      "ld.param.u64 %rd1, [to];\nld.global.u32 %r1, [%rd1];\n$again:\nadd.u32 %r2, %r1, 5;\n"
      "atom.global.cas.b32 %r3, [%rd1], %r1, %r2;\nsetp.ne.u32 %p1, %r3, %r1;\nmov.u32 %r1, %r3;\n"
      "@%p1 bra $again;\nret; }");
  ASSERT_TRUE(rewritten.ok()) << rewritten.status().ToString();
  EXPECT_EQ(rewritten->kernels[0].verdict.cut, Cut::kFreely)
      << rewritten->kernels[0].verdict.reason;
}

TEST(RewriteTest, ALookBackOfCubIsSafeInOrder) {
  const std::string body =
      "(.param .u64 s) { .reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .pred %p<2>;\n"
      "ld.param.u64 %rd1, [s];\n$w:\nld.relaxed.gpu.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n"
      "@%p1 bra $w;\nret; }\n";
  const Result<Rewritten> rewritten =
      Of(".entry _ZN3cub6detail4scan16DeviceScanKernelIiEEvv" + body +
         ".entry _ZN4mine6detail4scan16DeviceScanKernelIiEEvv" + body);
  ASSERT_TRUE(rewritten.ok()) << rewritten.status().ToString();
  EXPECT_EQ(rewritten->kernels[0].verdict.cut, Cut::kInOrder);
  EXPECT_EQ(rewritten->kernels[1].verdict.cut, Cut::kWhole);
}

TEST(RewriteTest, WhatIsNotSafeIsRefusedWithItsReason) {
  const Result<std::vector<test::Refusal>> refusals =
      test::CheckRefusals(GPUSCHED_PTX_FIXTURES "/unsafe");
  ASSERT_TRUE(refusals.ok()) << refusals.status().ToString();
  for (const test::Refusal& each : *refusals) {
    EXPECT_THAT(each.reason, HasSubstr(each.expected)) << each.fixture;
  }
}

TEST(ExtractTest, OneKernelTakesWhatItReachesAndNoMore) {
  const Result<Module> module = Module::Parse(
      ".version 7.0\n.target sm_75\n.address_size 64\n"
      ".func used();\n.func unused() { ret; }\n"
      ".global .u64 table[1] = {by_pointer};\n.global .u32 other;\n"
      ".func used() { ret; }\n.func by_pointer() { ret; }\n"
      ".entry a() { .reg .b64 %rd<2>; mov.u64 %rd1, table; call used; ret; }\n"
      ".entry b() { ret; }\n");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  const Result<std::string> text = ExtractEntry(*module, "a");
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_THAT(*text, HasSubstr("table"));
  EXPECT_THAT(*text, HasSubstr(".func by_pointer() { ret; }"));
  EXPECT_THAT(*text, Not(HasSubstr("unused")));
  EXPECT_THAT(*text, Not(HasSubstr("other")));
  EXPECT_THAT(*text, Not(HasSubstr(".entry b")));
  EXPECT_TRUE(Rewrite(*text).ok());
}

TEST(ExtractTest, AnUnknownKernelListsThoseThereAre) {
  const Result<Module> module =
      Module::Parse(".version 7.0\n.target sm_75\n.address_size 64\n.entry saxpy() { ret; }\n");
  ASSERT_TRUE(module.ok());
  const Result<std::string> text = ExtractEntry(*module, "saxpi");
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().reason(), "UNKNOWN_KERNEL");
  EXPECT_THAT(text.status().message(), HasSubstr("saxpy"));
}

}  // namespace
}  // namespace gpusched::device::ptx
