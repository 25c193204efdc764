// The reader of piglit's comments, on texts of the same form.
#include "support/piglit_file.h"

#include <gtest/gtest.h>

namespace gpusched::test {
namespace {

constexpr const char* kText = R"(/*!
[config]
name: of all
dimensions: 1
global_size: 4 0 0

# a comment
[test]
name: first
kernel_name: one
local_size: 2 0 0
arg_in:  1 uint 0x10
arg_out: 0 buffer int[4] -1 2 \
                         3 4
arg_in:  0 buffer int[4] repeat 7
arg_in:  2 buffer float[8] NULL

[test]
name: second
kernel_name: two
dimensions: 2
global_size: 2 3 0
arg_out: 0 buffer float3[2] 1 2 3 4 nan inf tolerance 2 ulp
!*/
kernel void one(global int *a, uint b, local float *c) {}
)";

TEST(PiglitFile, ReadsTestsAndWhatHoldsForAll) {
  const Result<PiglitFile> file = ParsePiglit(kText);
  ASSERT_TRUE(file) << file.status().ToString();
  ASSERT_EQ(file->tests.size(), 2u);
  const PiglitTest& first = file->tests[0];
  EXPECT_EQ(first.name, "first");
  EXPECT_EQ(first.kernel, "one");
  EXPECT_EQ(first.global[0], 4u);
  EXPECT_EQ(first.local[0], 2u);
  ASSERT_EQ(first.arguments.size(), 3u);
  EXPECT_EQ(first.arguments[0].kind, PiglitArgument::Kind::kBuffer);
  EXPECT_EQ(first.arguments[0].in[12], 7);
  EXPECT_EQ(first.arguments[0].out[0], 0xff);
  EXPECT_EQ(first.arguments[1].kind, PiglitArgument::Kind::kValue);
  EXPECT_EQ(first.arguments[1].in, (std::vector<std::uint8_t>{16, 0, 0, 0}));
  EXPECT_EQ(first.arguments[2].kind, PiglitArgument::Kind::kLocal);
  EXPECT_EQ(first.arguments[2].in.size(), 32u);
  EXPECT_EQ(file->tests[1].dimensions, 2u);
  EXPECT_EQ(file->tests[1].local[0], 0u);
}

TEST(PiglitFile, AcceptsWhatIsWithinTheTolerance) {
  const Result<PiglitFile> file = ParsePiglit(kText);
  ASSERT_TRUE(file);
  const PiglitArgument& exact = file->tests[0].arguments[0];
  EXPECT_TRUE(exact.Accepts(exact.out));
  EXPECT_FALSE(exact.Accepts(exact.in));
  const PiglitArgument& loose = file->tests[1].arguments[0];
  std::vector<std::uint8_t> got = loose.out;
  ASSERT_EQ(got.size(), 32u);
  got[12] = 99;  // behind the vector of 3
  got[0] += 2;   // 1 and two units in its last place
  EXPECT_TRUE(loose.Accepts(got));
  got[0] += 1;
  EXPECT_FALSE(loose.Accepts(got));
}

TEST(PiglitFile, SaysWhatItDoesNotRead) {
  for (const char* body :
       {"[test]\nkernel_name: k\nglobal_offset: 1 0 0\n", "[config]\nbuild_options: -DX\n",
        "[test]\nkernel_name: k\narg_in: 0 half 1\n", "[test]\nkernel_name: k\narg_in: 0 image 1\n",
        "[test]\nkernel_name: k\narg_in: 0 int x\n", "[test]\narg_in: 0 int 1\n", "",
        "[test]\nkernel_name: k\narg_in: 0 buffer int[2] 1\n",
        "[test]\nkernel_name: k\narg_in: 0 buffer int[18446744073709551615] repeat 1\n"}) {
    const auto file = ParsePiglit(std::string("/*!\n") + body + "!*/");
    EXPECT_EQ(file.status().code(), StatusCode::kUnimplemented) << body;
  }
  EXPECT_FALSE(ParsePiglit("kernel void k() {}"));
}

}  // namespace
}  // namespace gpusched::test
