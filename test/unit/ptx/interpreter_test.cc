// What the interpreter computes, told by hand; what it refuses, by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/fake_cudart/ptx_interpreter.h"

namespace gpusched::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A kernel with one parameter, the address of `out`; "%rd1" holds it, "%r0" the thread.
std::string Kernel(const std::string& body) {
  return ".version 7.0\n.target sm_75\n.address_size 64\n"
         ".visible .entry k(.param .u64 out) {\n"
         ".reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<20>; .reg .f64 %fd<20>;\n"
         ".reg .pred %p<20>; .reg .b16 %rs<20>;\n.shared .align 8 .b8 room[256];\n"
         "ld.param.u64 %rd1, [out];\nmov.u32 %r0, %tid.x;\n"
         "mul.wide.u32 %rd2, %r0, 4;\nadd.s64 %rd3, %rd1, %rd2;\n" +
         body + "\nret;\n}\n";
}

struct Ran {
  Status status;
  std::vector<std::uint32_t> out;
};
Ran RunKernel(const std::string& body, std::uint32_t threads, std::uint32_t blocks = 1) {
  Result<PtxProgram> program = PtxProgram::Load(Kernel(body));
  if (!program.ok()) return {program.status(), {}};
  std::vector<std::uint32_t> out(threads);
  const auto address = reinterpret_cast<std::uint64_t>(out.data());
  const Memory memory = [&](std::uint64_t at, std::size_t bytes) -> std::byte* {
    const std::uint64_t offset = at - address;
    if (offset + bytes > out.size() * 4) return nullptr;
    return reinterpret_cast<std::byte*>(out.data()) + offset;
  };
  PtxLaunch launch{
      .kernel = "k", .grid = {blocks}, .block = {threads}, .parameters = {}, .go_on = {}};
  launch.parameters = std::as_bytes(std::span(&address, 1));
  launch.most_instructions = 1'000'000;
  const Status status = program->Launch(launch, memory);
  return {status, out};
}

TEST(InterpreterTest, IntegersWrapAndDivideAsTheDeviceDoes) {
  const Ran ran = RunKernel(
      "mov.u32 %r1, -7; mov.u32 %r2, 2; div.s32 %r3, %r1, %r2; st.global.u32 [%rd1], %r3;\n"
      "rem.s32 %r3, %r1, %r2; st.global.u32 [%rd1+4], %r3;\n"
      "mul.hi.u32 %r3, %r1, %r2; st.global.u32 [%rd1+8], %r3;\n"
      "mul.wide.s32 %rd4, %r1, %r2; shr.u64 %rd4, %rd4, 32; cvt.u32.u64 %r3, %rd4; "
      "st.global.u32 [%rd1+12], %r3;",
      4);
  ASSERT_TRUE(ran.status.ok()) << ran.status.ToString();
  EXPECT_THAT(ran.out, ElementsAre(-3u, -1u, 1u, 0xffffffffu));
}

TEST(InterpreterTest, FloatsConvertWithRoundingAndSaturation) {
  const Ran ran = RunKernel(
      "mov.f32 %f1, 0f40200000; cvt.rzi.s32.f32 %r1, %f1; st.global.u32 [%rd1], %r1;\n"
      "cvt.rni.s32.f32 %r1, %f1; st.global.u32 [%rd1+4], %r1;\n"
      "mov.f32 %f1, 0fC0200000; cvt.rzi.u32.f32 %r1, %f1; st.global.u32 [%rd1+8], %r1;\n"
      "mov.f64 %fd1, 0d3FF8000000000000; cvt.rn.f32.f64 %f2, %fd1; st.global.f32 [%rd1+12], %f2;",
      4);
  ASSERT_TRUE(ran.status.ok()) << ran.status.ToString();
  EXPECT_THAT(ran.out, ElementsAre(2u, 2u, 0u, 0x3fc00000u));
}

TEST(InterpreterTest, ThreadsMeetAtABarrier) {
  const Ran ran = RunKernel(
      "mov.u32 %r1, room; shl.b32 %r2, %r0, 2; add.u32 %r2, %r1, %r2; st.shared.u32 [%r2], %r0;\n"
      "bar.sync 0;\nmov.u32 %r3, 3; sub.u32 %r3, %r3, %r0; shl.b32 %r3, %r3, 2; add.u32 %r3, %r1, "
      "%r3;\n"
      "ld.shared.u32 %r4, [%r3]; st.global.u32 [%rd3], %r4;",
      4);
  ASSERT_TRUE(ran.status.ok()) << ran.status.ToString();
  EXPECT_THAT(ran.out, ElementsAre(3u, 2u, 1u, 0u));
}

TEST(InterpreterTest, WarpsExchangeAndVote) {
  const Ran ran = RunKernel(
      "shfl.sync.down.b32 %r1|%p1, %r0, 1, 31, 15;\nsetp.gt.u32 %p2, %r0, 1;\n"
      "vote.sync.ballot.b32 %r2, %p2, 15;\nshl.b32 %r2, %r2, 8; or.b32 %r1, %r1, %r2;\n"
      "st.global.u32 [%rd3], %r1;",
      4);
  ASSERT_TRUE(ran.status.ok()) << ran.status.ToString();
  EXPECT_EQ(ran.out[0], 0xc01u);
  EXPECT_EQ(ran.out[2], 0xc03u);
}

TEST(InterpreterTest, CallsReturnTheirValue) {
  const std::string text =
      ".version 7.0\n.target sm_75\n.address_size 64\n"
      ".func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %r<3>;\n"
      "ld.param.u32 %r1, [a]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }\n"
      ".global .u32 kept;\n"
      ".entry k() { .reg .b32 %r<3>;\n{ .param .b32 p0; st.param.b32 [p0], 21; .param .b32 r0;\n"
      "call.uni (r0), twice, (p0); ld.param.b32 %r1, [r0]; }\nst.global.u32 [kept], %r1; ret; }\n";
  Result<PtxProgram> program = PtxProgram::Load(text);
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  const Status status = program->Launch(
      {.kernel = "k", .grid = {1}, .block = {1}, .parameters = {}, .go_on = {}}, {});
  ASSERT_TRUE(status.ok()) << status.ToString();
  std::uint32_t kept = 0;
  std::memcpy(&kept, program->Variable("kept").data(), sizeof(kept));
  EXPECT_EQ(kept, 42u);
}

TEST(InterpreterTest, AnOpcodeItDoesNotKnowFailsByName) {
  const Ran ran = RunKernel("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];", 1);
  EXPECT_EQ(ran.status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(ran.status.message(), HasSubstr("'tex'"));
}

TEST(InterpreterTest, AnAddressOutsideIsIllegal) {
  const Ran ran = RunKernel("st.global.u32 [%rd1+4], %r0;", 1);
  EXPECT_EQ(ran.status.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(ran.status.message(), HasSubstr("illegal address"));
}

TEST(InterpreterTest, WaitingForEverIsNoticed) {
  const Ran spins = RunKernel(
      "$w:\nld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra $w;", 1);
  EXPECT_EQ(spins.status.code(), StatusCode::kDeadlineExceeded);
  const Ran parts = RunKernel(
      "setp.eq.u32 %p1, %r0, 0;\n@%p1 bra $one;\nbar.sync 1;\nbra $end;\n$one:\nbar.sync 2;\n$end:",
      2);
  EXPECT_EQ(parts.status.code(), StatusCode::kAborted);
}

TEST(InterpreterTest, ATrapAborts) {
  EXPECT_EQ(RunKernel("trap;", 1).status.code(), StatusCode::kAborted);
}

}  // namespace
}  // namespace gpusched::test
