// What the outline of a module tells, and what it refuses with which line.
#include "device/cuda/ptx/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace gpusched::device::ptx {
namespace {

using testing::HasSubstr;

constexpr char kHeader[] = ".version 7.0\n.target sm_75\n.address_size 64\n";

Result<Module> Read(const std::string& text) { return Module::Parse(kHeader + text); }

TEST(ModuleTest, HeaderIsRead) {
  const Result<Module> module =
      Module::Parse(".version 8.1\n.target sm_90a, debug\n.address_size 64\n");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  EXPECT_EQ(module->version(), 81u);
  EXPECT_EQ(module->target(), "sm_90a");
}

TEST(ModuleTest, ParametersLieAsTheDriverLaysThem) {
  const Result<Module> module = Read(
      ".visible .entry k(.param .u64 .ptr .global .align 16 a, .param .u8 b,\n"
      ".param .align 4 .b8 c[13], .param .f64 d, .param .u16 e)\n{ ret; }\n");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  const Function& kernel = module->functions()[0];
  const std::uint32_t offsets[] = {0, 8, 12, 32, 40}, sizes[] = {8, 1, 13, 8, 2};
  ASSERT_EQ(kernel.parameters.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(kernel.parameters[i].offset, offsets[i]) << i;
    EXPECT_EQ(kernel.parameters[i].size, sizes[i]) << i;
  }
  EXPECT_EQ(kernel.parameter_bytes(), 42u);
}

TEST(ModuleTest, CommentsAndStringsHideWhatTheyHold) {
  const Result<Module> module = Read(
      "// .entry no() {\n/* .entry neither() { */\n"
      ".entry k() { .pragma \"} .entry nor() {\"; ret; }\n");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  ASSERT_EQ(module->functions().size(), 1u);
  EXPECT_EQ(module->functions()[0].name, "k");
}

TEST(ModuleTest, BlockBoundsAreRead) {
  const Result<Module> module = Read(
      ".entry a() .maxntid 128, 2, 1 .minnctapersm 2 { ret; }\n.entry b() .reqntid 8, 4 { ret; "
      "}\n");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  EXPECT_EQ(module->functions()[0].max_block_threads, 256u);
  EXPECT_EQ(Volume(module->functions()[1].required_block), 32u);
}

TEST(ModuleTest, ABodyStandsForItsDeclaration) {
  const Result<Module> module =
      Read(".func f();\n.entry k() { call f; ret; }\n.func f() { ret; }\n");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  EXPECT_TRUE(module->functions()[*module->FindFunction("f")].has_body);
}

TEST(ModuleTest, VariablesTellSpaceAndSize) {
  const Result<Module> module = Read(
      ".global .align 8 .u64 table[2][3];\n.const .f32 c = 0f3F800000;\n"
      ".extern .shared .align 16 .b8 dynamic[];\n.shared .v4 .f32 four;\n");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  EXPECT_EQ(module->variables()[0].bytes, 48u);
  EXPECT_EQ(module->variables()[1].space, Space::kConstant);
  EXPECT_EQ(module->variables()[2].bytes, 0u);
  EXPECT_EQ(module->variables()[3].bytes, 16u);
  EXPECT_TRUE(module->has_mutable_globals());
}

struct Broken {
  const char* text;
  const char* says;
};
class BrokenModule : public testing::TestWithParam<Broken> {};

TEST_P(BrokenModule, IsRefusedWithItsLine) {
  const Result<Module> module = Read(GetParam().text);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.status().reason(), "BAD_MODULE");
  EXPECT_THAT(module.status().message(), HasSubstr(GetParam().says));
}
INSTANTIATE_TEST_SUITE_P(Texts, BrokenModule,
                         testing::Values(Broken{".entry k() {\n ret;\n", "no end"},
                                         Broken{"/* on", "comment has no end"},
                                         Broken{".entry k( { ret; }", "line 4"},
                                         Broken{"\x01", "no PTX has"},
                                         Broken{".file 1 \"x", "string has no end"},
                                         Broken{".nonsense;", "no directive"},
                                         Broken{".entry k() { ret }", "expected ';'"},
                                         Broken{".func f() { ret; }\n.func f() { ret; }", "line 5"},
                                         Broken{".global .b8 x[-1];", "array's size"},
                                         Broken{".target", "expected a target"}));

TEST(ModuleTest, NoTextIsNoModule) {
  EXPECT_FALSE(Module::Parse("").ok());
  EXPECT_FALSE(Module::Parse("hello").ok());
  EXPECT_FALSE(Module::Parse(".version 7.0").ok());
}

// Block ids in a body, by the words of the tokens.
int BlockIdsIn(const Module& module, const Function& function) {
  int ids = 0;
  for (TokenIndex at = function.body; at < function.end; ++at) {
    const std::string_view word = module.Text(at);
    if (word.starts_with("%ctaid") || word.starts_with("%nctaid")) ++ids;
  }
  return ids;
}

TEST(ModuleTest, AnOutlineHasTheFunctionsOfTheWhole) {
  for (const char* name : {"functions", "grids", "shared"}) {
    std::ifstream file(GPUSCHED_PTX_FIXTURES "/compiled/" + std::string(name) + ".ptx");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const Result<Module> whole = Module::Parse(text), outline = Module::ParseOutline(text);
    ASSERT_TRUE(whole.ok() && outline.ok()) << outline.status().ToString();
    ASSERT_EQ(outline->functions().size(), whole->functions().size());
    for (std::size_t i = 0; i < whole->functions().size(); ++i) {
      const Function &a = whole->functions()[i], &b = outline->functions()[i];
      EXPECT_EQ(a.name, b.name);
      EXPECT_EQ(a.parameter_bytes(), b.parameter_bytes()) << a.name;
      EXPECT_EQ(BlockIdsIn(*whole, a), BlockIdsIn(*outline, b)) << a.name;
    }
    EXPECT_EQ(outline->variables().size(), whole->variables().size());
  }
}

TEST(ModuleTest, AnOutlineSeesNoBraceOrBlockIdInCommentsAndStrings) {
  const std::string text = std::string(kHeader) +
                           ".entry k() {\n  // } %ctaid.x\n  /* { %nctaid.y */\n"
                           "  .pragma \"} %ctaid.z\";\n  { mov.u32 %r1, %ctaid.y; }\n  ret;\n}\n"
                           ".entry l() { ret; }\n";
  const Result<Module> outline = Module::ParseOutline(text);
  ASSERT_TRUE(outline.ok()) << outline.status().ToString();
  ASSERT_EQ(outline->functions().size(), 2u);
  EXPECT_EQ(BlockIdsIn(*outline, outline->functions()[0]), 1);
  EXPECT_FALSE(Module::ParseOutline(std::string(kHeader) + ".entry k() { { ret; }").ok());
}

}  // namespace
}  // namespace gpusched::device::ptx
