// What the scan of a source says of kernels that others' blocks might hold up, and of renaming.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "device/opencl/source_scan.h"
#include "device/opencl/source_tokens.h"

namespace gpusched::device {
namespace {

using ::testing::HasSubstr;

bool Waits(const std::string& source, const std::string& kernel = "k") {
  return Scan(source).waits.contains(kernel);
}
bool BodyWaits(const std::string& body) {
  return Waits("kernel void k(global int *f, volatile global int *v, global int *out, int n) {\n" +
               body + "\n}");
}

TEST(SourceTokens, LeavesOutWhatIsNoCode) {
  const SourceTokens tokens =
      Tokenize("a /* b \n c */ d // e \\\n f\n\"g h\" 'i' 0x1fu .5f\n  # define J \\\n k\nl%:m\n");
  std::string code;
  for (const SourceToken& token : tokens.code) code += token.text + "|";
  EXPECT_EQ(code, "a|d|||0x1fu|.5f|l|%|:|m|");
  EXPECT_EQ(tokens.code.back().line, 7u);
  ASSERT_EQ(tokens.directives.size(), 1u);
  EXPECT_EQ(tokens.directives[0].size(), 3u);
  EXPECT_EQ(tokens.directives[0][2].text, "k");
}

TEST(SourceTokens, TakesAnything) {
  for (const char* source :
       {"", "\\", "/*", "\"", "'\\", "#", "\\\r\n#", "((((", "}}}{", "#define"})
    EXPECT_EQ(Scan(source).waits.size(), 0u) << source;
}

// Each is an inclusion to the compiler.
TEST(SourceScan, FindsInclusionsHoweverWritten) {
  using namespace std::string_view_literals;
  for (const std::string_view source :
       {"#include \"a\""sv, "#inc\\ \t\nlude \"a\""sv, "#inc?\?/\nlude \"a\""sv,
        "%\\\n:include <a>"sv, "/* *\\\n/\n#include \"a\"\n/* */"sv,
        "/\\\n/ /*\n#include \"a\"\n"sv, "// x\r#include \"a\""sv, "\0#include \"a\""sv,
        "constant char s[] = \"?\?/\"/*\";\n#include <a>\n//*/"sv,
        "\xef\xbb\xbf#include \"a\""sv}) {
    EXPECT_THAT(Scan(source).reads_file, HasSubstr("include")) << source;
  }
  EXPECT_EQ(Scan("// x \\ \n#include \"a\"\n").reads_file, "");
}

TEST(SourceScan, FindsWaitsForOtherBlocks) {
  EXPECT_TRUE(BodyWaits("while (atomic_add(f, 0) < n);"));
  EXPECT_TRUE(BodyWaits("while (atomic_or(&f[1], 0x0) == 0) {}"));
  EXPECT_TRUE(BodyWaits("while (v[get_group_id(0) - 1] == 0);"));
  EXPECT_TRUE(BodyWaits("while (f[0] == 0);"));
  EXPECT_TRUE(BodyWaits("while (*f != n) mem_fence(CLK_GLOBAL_MEM_FENCE);"));
  EXPECT_TRUE(BodyWaits("while (*(volatile global int *)f == 0) n++;"));
  EXPECT_TRUE(BodyWaits("do { n = v[0]; } while (n == 0);"));
  EXPECT_TRUE(BodyWaits("for (;;) { if (atomic_max(f, 0) > 3) break; }"));
  EXPECT_TRUE(BodyWaits("for (int i = 0; v[0] == 0; i++) out[i] = i;"));
  EXPECT_TRUE(BodyWaits("while (atomic_cmpxchg(f, 0, 1) != 0);"));
  EXPECT_TRUE(BodyWaits("while (atomic_xchg(f, 1));"));
  EXPECT_TRUE(BodyWaits("again: if (atomic_or(f, 0) == 0) goto again;"));
  EXPECT_TRUE(BodyWaits("if (n) while (1) if (v[0]) break; else n++;"));
}

TEST(SourceScan, FindsThemThroughHelpersAndMacros) {
  EXPECT_TRUE(
      Waits("int ready(global int *f) { return atomic_or(f, 0); }\n"
            "kernel void k(global int *f) { while (!ready(f)) ; }"));
  EXPECT_TRUE(
      Waits("void await(volatile global int *f) { while (*f == 0) {} }\n"
            "void between(global int *f) { await(f); }\n"
            "kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n"
            "void k(global int *f) { between(f); }"));
  EXPECT_TRUE(
      Waits("#define PEEK(p) (*(volatile global int *)(p))\n"
            "kernel void k(global int *f) { while (PEEK(f) == 0) {} }"));
  EXPECT_TRUE(
      Waits("#define AWAIT(p) while (atomic_add(p, 0) == 0)\n"
            "kernel void k(global int *f) { AWAIT(f); }"));
  EXPECT_TRUE(
      Waits("typedef volatile global int *flag;\n"
            "kernel void k(flag f) { do { } while (*f == 0); }"));
}

TEST(SourceScan, TellsTheLineAndLeavesOthersAlone) {
  const SourceScan scan = Scan(
      "kernel void a(global int *f) {\n"
      "  while (atomic_or(f, 0) == 0) {}\n"
      "}\n"
      "kernel void b(global int *f) { f[0] = 1; }\n");
  EXPECT_THAT(scan.waits.at("a"), HasSubstr("line 2"));
  EXPECT_FALSE(scan.waits.contains("b"));
  EXPECT_EQ(scan.no_prelude, "");
}

TEST(SourceScan, CountedLoopsRetriesAndWorkQueuesAreNoWaits) {
  EXPECT_FALSE(BodyWaits("for (int i = 0; i < n; i++) out[i] = v[i] + atomic_add(f, i);"));
  EXPECT_FALSE(BodyWaits("for (int s = n / 2; s > 0; s >>= 1) { barrier(1); out[s] += out[0]; }"));
  EXPECT_FALSE(BodyWaits("int i; while ((i = atomic_inc(f)) < n) out[i] = i;"));
  EXPECT_FALSE(BodyWaits("int i; while ((i = atomic_add(v, 4)) < n) out[i] = i;"));
  EXPECT_FALSE(
      BodyWaits("int a, b; do { a = *v; b = a + n; } while (atomic_cmpxchg(v, a, b) != a);"));
  EXPECT_FALSE(BodyWaits("while (n > 1) { out[n] = f[n]; n /= 2; }"));
  EXPECT_FALSE(BodyWaits("do { n--; } while (f[n] > 0);"));
  EXPECT_FALSE(BodyWaits("while (f[n++] > 0);"));
  EXPECT_FALSE(BodyWaits("if (atomic_inc(f) == n - 1) out[0] = v[0];"));
  EXPECT_FALSE(
      Waits("void add(volatile global int *p, int x) { atomic_add(p, x); }\n"
            "kernel void k(global int *f, int n) { while (n > 0) { add(f, n); n--; } }"));
}

TEST(SourceScan, AKernelThatTheTextDoesNotNameMayBeAnyThatWaits) {
  const std::string waits = "(global int *f) { while (atomic_add(f, 0) == 0) {} }\n";
  for (const std::string& source : {"#define NAME made\nkernel void NAME" + waits,
                                    "#define K(n) kernel void n##_made\nK(just)" + waits,
                                    "#define K(n) kernel void n" + waits + "K(made)\n"}) {
    const SourceScan scan = Scan(source + "kernel void plain(global int *f) { f[0] = 1; }\n");
    EXPECT_NE(scan.WaitOf("made"), "") << source;
    EXPECT_EQ(scan.WaitOf("plain"), "") << source;
  }
  EXPECT_EQ(Scan("#define NAME made\nkernel void NAME(global int *f) { f[0] = 1; }").WaitOf("made"),
            "");
}

TEST(SourceScan, ReadingFilesIsSeenHoweverItIsWritten) {
  for (const char* line : {"#include \"other.cl\"", "# include </etc/passwd>", "%:include FILE",
                           "#inc\\\nlude \"x\"", "#/**/include_next <x>", "#import \"x\""}) {
    EXPECT_NE(Scan(std::string(line) + "\n").reads_file, "") << line;
  }
  for (const char* line : {"// #include \"x\"", "/* \n#include \"x\"\n */", "#define include x"}) {
    EXPECT_EQ(Scan(std::string(line) + "\n").reads_file, "") << line;
  }
}

TEST(SourceScan, WhatWouldUndoTheRenamingForbidsIt) {
  for (const char* line :
       {"#undef get_global_id", "# undef /* a */ get_local_size", "%:undef get_work_dim",
        "#ifdef get_group_id\n#endif", "#if defined(get_num_groups)\n#endif",
        "#define get_global_id(d) (get_global_id(d) + 1)", "#un\\\ndef get_global_size",
        "#pragma push_macro(\"get_global_id\")",
        "kernel void k(queue_t q) { enqueue_kernel(q, 0, n, ^{}); }",
        "void f() { __asm__(\"nop\"); }"}) {
    EXPECT_NE(Scan(std::string(line) + "\n").no_prelude, "") << line;
  }
  for (const char* line : {"#define ID get_global_id(0)", "#undef other", "// #undef get_global_id",
                           "#define PICK(what) get_##what(0)", "#pragma unroll",
                           "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"}) {
    EXPECT_EQ(Scan(std::string(line) + "\n").no_prelude, "") << line;
  }
}

}  // namespace
}  // namespace gpusched::device
