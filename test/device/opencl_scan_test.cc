// What the scan of a source says of kernels that others' blocks might hold up, and of renaming.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>
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
  EXPECT_EQ(code, "a|d|||0x1fu|.5f|l|#|m|");
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

// However macros spell it, the kernel may wait.
TEST(SourceScan, SeesWaitsThroughMacros) {
  const auto with = [](const std::string& lines, const std::string& body) {
    return Waits(lines + "\nkernel void k(global int *f, int n) {\n" + body + "\n}\n");
  };
  EXPECT_TRUE(with("#define UNTIL while", "UNTIL (atomic_or(f, 0) == 0) {}"));
  EXPECT_TRUE(with("#define EVER for (;;)", "EVER { if (atomic_or(f, 0)) break; }"));
  EXPECT_TRUE(
      with("#define LOOP do {\n#define END(c) } while (!(c))", "LOOP n++; END(atomic_or(f, 0));"));
  EXPECT_TRUE(with("#define SHY volatile", "while (*(SHY global int *)f == 0) n++;"));
  EXPECT_TRUE(with("#define PEEK atomic_or", "while (PEEK(f, 0) == 0) {}"));
  EXPECT_TRUE(with("#define ZERO (0)", "while (atomic_add(f, ZERO) == 0) {}"));
  EXPECT_TRUE(with("#define JOIN(a, b) a##b", "while (JOIN(atomic, _or)(f, 0) == 0) {}"));
  EXPECT_TRUE(with("#define IN(x) x\n#define TWICE(x) IN(IN(x))",
                   "TWICE(while) (TWICE(atomic_or(f, 0)) == 0) {}"));
  EXPECT_TRUE(
      with("#define CALL(what, ...) what(__VA_ARGS__)", "while (CALL(atomic_or, f, 0) == 0) {}"));
  EXPECT_TRUE(with("#define A(x) B\n#define B(x) while (x)", "A(1)(atomic_or(f, 0) == 0) {}"));
  EXPECT_TRUE(with("#define N(a, b) a##b while", "N(,) (atomic_or(f, 0) == 0) {}"));
  EXPECT_TRUE(with("#define while while", "while (atomic_or(f, 0) == 0) {}"));
  EXPECT_TRUE(
      Waits("#define WAITING(name) kernel void name##_all(global int *f) \\\n"
            "  { while (atomic_or(f, 0) == 0) {} }\nWAITING(k)",
            "k_all"));
  EXPECT_TRUE(Waits("kernel void k(global int *f) <% while (atomic_or(f<:0:>, 0) == 0) ; %>"));
  // What is defined for a while counts for that while.
  EXPECT_TRUE(with("#define while if\n#undef while", "while (atomic_or(f, 0) == 0) {}"));
  EXPECT_FALSE(with("#define LOOK(p) atomic_or(p, 0)\n#undef LOOK\n#define LOOK(p) (p)[0]",
                    "while (LOOK(f) < n) n--;"));
  EXPECT_FALSE(with("#define REPEAT(n) for (int i = 0; i < n; i++)", "REPEAT(n) f[i] = i;"));
  EXPECT_FALSE(with("#define STEP(p) atomic_add(p, 1)", "while (STEP(f) < n) n--;"));
}

// Each branch of a conditional may be the one that the compiler takes.
TEST(SourceScan, OfWhatMayBeDefinedTheWorstCounts) {
  const auto with = [](const std::string& a, const std::string& b, const std::string& body) {
    return Waits("#ifdef OTHER\n" + a + "\n#else\n" + b +
                 "\n#endif\nkernel void k(global int *f, int n) {\n" + body + "\n}\n");
  };
  const std::string looks = "#define GET(p) atomic_or(p, 0)",
                    takes = "#define GET(p) atomic_inc(p)";
  EXPECT_TRUE(with(looks, takes, "while (GET(f) < n) {}"));
  EXPECT_TRUE(with(takes, looks, "while (GET(f) < n) {}"));
  EXPECT_TRUE(with(looks, "", "while (GET(f) < n) {}"));
  EXPECT_TRUE(with("#define DO while", "#define DO if", "DO (atomic_or(f, 0) == 0) {}"));
  EXPECT_TRUE(with("#define DO if", "#define DO while", "DO (atomic_or(f, 0) == 0) {}"));
  EXPECT_TRUE(with("#define while if", "", "while (atomic_or(f, 0) == 0) {}"));
  EXPECT_TRUE(with("#define READ atomic_or", "#define READ atomic_add", "while (READ(f, 0)) {}"));
  EXPECT_TRUE(with("#define STEP 0", "#define STEP 1", "while (atomic_add(f, STEP) < n) {}"));
  EXPECT_TRUE(with("#define OPEN {", "#define OPEN { {", "if (n) OPEN f[0] = 1; }"))
      << "nobody knows";
  EXPECT_FALSE(with(takes, "#define GET(p) atom_inc(p)", "while (GET(f) < n) {}"));
  EXPECT_FALSE(with("#define T float", "#define T int", "for (T i = 0; i < n; i++) f[0] = i;"));
  EXPECT_FALSE(with("#define N 64", "", "for (int i = 0; i < N; i++) f[i] = N;"));
  EXPECT_FALSE(with("#define SYNC barrier(1);", "#define SYNC", "while (n > 1) { SYNC n /= 2; }"));
}

TEST(SourceScan, WhatMakesFunctionsOfUnknownShapeLeavesNoneOfThemKnown) {
  const SourceScan scan = Scan(
      "#ifdef A\n#define MAKE(n) kernel void n(global int *f) {\n#else\n"
      "#define MAKE(n) kernel void n(volatile global int *f) { {\n#endif\n"
      "kernel void plain(global int *f) { f[0] = 1; }\nMAKE(made) f[0] = 1; }\n");
  EXPECT_THAT(scan.WaitOf("plain"), HasSubstr("MAKE"));
  EXPECT_THAT(scan.WaitOf("made"), HasSubstr("line 7"));
}

// Sources that would take for ever, were each place looked at from each other.
TEST(SourceScan, TakesTimeInProportion) {
  const auto repeated = [](std::string_view text, std::size_t bytes) {
    std::string all;
    while (all.size() < bytes) all += text;
    return all;
  };
  const auto numbered = [](const std::function<std::string(const std::string&)>& line,
                           std::size_t bytes) {
    std::string all;
    for (int i = 0; all.size() < bytes; ++i) all += line(std::to_string(i)) + "\n";
    return all;
  };
  const auto kernel = [](const std::string& body) {
    return "kernel void k(global int *f){" + body;
  };
  using Make = std::function<std::string(std::size_t bytes)>;
  const std::map<std::string, Make> sources{
      {"loops in loops", [&](std::size_t n) { return kernel(repeated("for(;;)", n)); }},
      {"waits in waits", [&](std::size_t n) { return kernel(repeated("while(x){", n)); }},
      {"tails in tails", [&](std::size_t n) { return kernel(repeated("do ", n)); }},
      {"heads in heads",
       [&](std::size_t n) {
         return kernel(repeated("while(({", n / 2) + repeated("}));", n / 2));
       }},
      {"atomics in atomics", [&](std::size_t n) { return kernel(repeated("atomic_add(f,", n)); }},
      {"exchanges", [&](std::size_t n) { return kernel(repeated("atomic_cmpxchg(f,1,1+", n)); }},
      {"names of atomics", [&](std::size_t n) { return kernel(repeated("atomic_or ", n)); }},
      {"qualifiers", [&](std::size_t n) { return kernel(repeated("volatile ", n)); }},
      {"open brackets", [&](std::size_t n) { return repeated("(", n); }},
      {"open bodies", [&](std::size_t n) { return repeated("f(){", n); }},
      {"backslashes", [&](std::size_t n) { return repeated("\\ ", n); }},
      {"volatile types",
       [&](std::size_t n) {
         return numbered(
             [](const auto& i) {
               return "typedef volatile int t" + i + ";void f" + i + "(t" + i + " x){x;}";
             },
             n);
       }},
      {"a chain of helpers",
       [&](std::size_t n) {
         return "void f(global int *f){while(atomic_or(f,0));}\n" +
                numbered([](const auto& i) { return "void f" + i + "0(){f" + i + "1();}"; }, n);
       }},
      {"helpers of one name",
       [&](std::size_t n) {
         return repeated("void f(global int*g){while(atomic_or(g,0));f(g);}\n", n);
       }},
      {"macros that double",
       [&](std::size_t n) {
         return "#define A(x) x x\n#define B(x) A(A(A(A(x))))\n#define C(x) B(B(B(B(x))))\n" +
                kernel(repeated("C(C(y))", n));
       }},
      {"macros in macros",
       [&](std::size_t n) {
         return "#define A(x) x\n" + kernel(repeated("A(", n / 2) + repeated(")", n / 2));
       }},
      {"macros that go on",
       [&](std::size_t n) { return "#define A(x) x A\n" + kernel("A" + repeated("(1)", n)); }},
      {"arguments that do not end",
       [&](std::size_t n) { return "#define A(x) x\n" + kernel(repeated("A(,", n)); }},
      {"one macro after the other",
       [&](std::size_t n) {
         return numbered([](const auto& i) { return "#define m" + i + " m" + i + "0"; }, n) + "m1";
       }},
      {"definitions upon definitions",
       [&](std::size_t n) {
         return "#if 1\n" +
                numbered([](const auto& i) { return "#define A(x) x" + i + "\nA(1)"; }, n);
       }},
      {"parameters",
       [&](std::size_t n) {
         const auto name = [](const auto& i) { return ",p" + i; };
         std::string names = numbered(name, n / 2);
         std::replace(names.begin(), names.end(), '\n', ' ');
         std::string body = names;
         std::replace(body.begin(), body.end(), ',', ' ');
         return "#define A(a" + names + ")" + body + "\n";
       }},
      {"pragmas in pragmas",
       [&](std::size_t n) { return repeated("_Pragma(\"_Pragma(\\\"unroll\\\")\")\n", n); }},
      {"conditions", [&](std::size_t n) {
         return "#define A(x) x x x x\n" + repeated("#if A(A(A(A(A(1)))))\n", n);
       }}};
  const auto cost = [](const std::string& source) {
    double least = 1e9;
    for (int repeat = 0; repeat < 3; ++repeat) {
      timespec before{}, after{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
      (void)Scan(source);
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
      least = std::min(least, static_cast<double>(after.tv_sec - before.tv_sec) +
                                  1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec));
    }
    return least;
  };
  // Sixteen times as long: 16 times the cost where it grows with the length, 256 with its square.
  for (const auto& [name, make] : sources) {
    const double small = cost(make(1 << 13)), large = cost(make(1 << 17));
    EXPECT_LT(large, 64 * small) << name << ": " << small << " and " << large;
  }
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

TEST(SourceScan, AKernelGoesByTheNameThatTheTextGivesIt) {
  const std::string waits = "(global int *f) { while (atomic_add(f, 0) == 0) {} }\n";
  for (const std::string& source : {"#define NAME made\nkernel void NAME" + waits,
                                    "#define K(n) kernel void n##_made\nK(just)" + waits,
                                    "#define K(n) kernel void n" + waits + "K(made)\n"}) {
    const SourceScan scan = Scan(source + "kernel void plain(global int *f) { f[0] = 1; }\n");
    EXPECT_NE(scan.WaitOf("made") + scan.WaitOf("just_made"), "") << source;
    EXPECT_NE(scan.WaitOf("nobody"), "") << "may be any that waits";
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
  // That one is there is read off its absence.
  for (const char* line :
       {"#if __has_include(\"x\")", "#ifdef X\n#elif defined(X) && __has_include_next(<x>)",
        "#define H __has_include(<x>)\n#if H", "#define H __has_include\n#if H(<x>)",
        "#if __has_embed(<x>)",
        "#define J(a, b) a##b\n#define K(a, b) J(a, b)\n#if K(__has_, include)(<x>)",
        "#define J(a) __has_##a\n#if 1\n#define K J(include)\n#else\n#define K 1\n#endif\n#if "
        "K(<x>)",
        "#define J(a) a##a\n#ifdef X\n#define K (\n#else\n#define K 1\n#endif\n#if K"}) {
    EXPECT_NE(Scan(std::string(line) + "\n#endif\n").reads_file, "") << line;
  }
  for (const char* line : {"// #include \"x\"", "/* \n#include \"x\"\n */", "#define include x",
                           "#define J(a, b) a##b\n#if J(1, 2) && defined(J)\n#endif"}) {
    EXPECT_EQ(Scan(std::string(line) + "\n").reads_file, "") << line;
  }
}

std::string Whole(const SourceScan& scan) { return scan.reads_file + scan.refused; }

// Each is an inclusion to the compiler, though some other reading has it in a comment or a literal.
TEST(SourceScan, WhatCompilersReadOtherwiseHidesNoInclusion) {
  const std::string hidden = "#include \"/x\"\n// */\n";
  for (const std::string begin :
       {"#pragma mark foo /*\n", "#warning foo /*\n", "#error /*\n", "#  pragma x /* y\n",
        "#ident /*\n", "%:error x /**/ /*\n", "// a \\\n\r /*\n", "// a \\ \t\n\r/*\n",
        "// a \\\r\n/*\n", "// a \\\r/*\n", "#define X \"\\\\\n\n", "#define X '\\\\\n\n",
        "/* *\\\n\\\n/ /*/\n"}) {
    EXPECT_NE(Whole(Scan(begin + hidden)), "") << begin << hidden;
  }
  for (const char* source :
       {"#define X 1 /* a\n b */\n", "#if 1 /*\n\n*/\n#endif /* a\n*/\n",
        "#pragma unroll /* x */\n", "#pragma unroll // x\n", "# /* \n */ define X 1\n",
        "#error it's\n", "constant char s[] = \"a\\\"b\\\\\";\n",
        "#define F(x) \\\n  /* a */ x /* b \\\n c */\n"}) {
    EXPECT_EQ(Whole(Scan(source)), "") << source;
  }
}

TEST(SourceScan, PragmasThatReadFilesOrEndTheCompilerAreRefused) {
  for (const char* line :
       {"#pragma GCC dependency \"/x\"", "#pragma clang dependency </x>",
        "#pragma clang module load x", "#pragma /**/ clang /**/ __debug crash",
        "#pragma clang system_header", "_Pragma(\"GCC dependency \\\"/x\\\"\")",
        "_Pragma ( \"/**/ clang __debug crash\" )",
        "#define U _Pragma(\"clang __debug llvm_fatal_error\")\nU", "_Pragma(L\"unroll\")",
        "#define P(x) _Pragma(#x)\nP(GCC dependency \"/x\")",
        "#define P(x) _Pragma(x)\nP(\"unroll\")",
        "#define J(a, b) a##b\nJ(_Pr, agma)(\"clang __debug crash\")",
        "#define H(a, ...) a##__VA_OPT__(include)\n#if H(__has_, 1)(</x>)\n#endif"}) {
    EXPECT_NE(Scan(std::string(line) + "\n").refused, "") << line;
  }
  for (const char* line :
       {"#pragma unroll 4", "_Pragma(\"unroll 4\")", "#define U _Pragma(\"unroll\")\nU",
        "#pragma clang loop unroll(full)", "#pragma GCC diagnostic push", "#pragma clang",
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
        "#define J(a, b) a##b\n#define U _Pragma(\"unroll\")"}) {
    EXPECT_EQ(Scan(std::string(line) + "\n").refused, "") << line;
  }
}

TEST(SourceScan, WhatNestsTooDeepForTheCompilerIsRefused) {
  const auto times = [](int count, std::string_view text) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  const auto body = [](const std::string& code) {
    return Scan("#define F(x) x\n#define N(x) x x x x x x x x x x\nkernel void k(global int *f) {" +
                code + "}\n")
        .refused;
  };
  EXPECT_THAT(body("f[0] = " + times(200'000, "!") + "1;"), HasSubstr("divide it"));
  EXPECT_THAT(body("f[0] = N(N(N(N(- - - - - -)))) 1;"), HasSubstr("divide it"));
  EXPECT_THAT(body("f[0] = " + times(150'000, "F(") + "1" + times(150'000, ")") + ";"),
              HasSubstr("brackets"));
  EXPECT_THAT(body("if (f[0]) {}" + times(30'000, " else if (f[0]) {}")), HasSubstr("divide it"));
  EXPECT_THAT(body("if (f[0]) f[1] = 1;" + times(30'000, " else if (f[0]) f[1] = 1;")),
              HasSubstr("divide it"));
  EXPECT_NE(Scan("#if " + times(100'000, "!") + "0\n#endif\n").refused, "");
  EXPECT_NE(Scan("#if " + times(100'000, "(") + "0\n#endif\n").refused, "");
  EXPECT_NE(Scan("#define D " + times(5'000, "{") + "\n").refused, "");
  // Long is not deep.
  EXPECT_EQ(body(times(30'000, "f[0] = 1; { f[1] = (f[0] + 1); } if (f[0]) {}")), "");
  EXPECT_EQ(body("int t[] = {" + times(60'000, "{1, -2}, ") + "}; f[0] = t[1];"), "");
  EXPECT_EQ(body("f[0] = 0" + times(9'000, " + (f[1])") + ";"), "");
  EXPECT_EQ(Scan(times(30'000, "void f(int x) { x = 1; }\n")).refused, "");
  EXPECT_EQ(Scan(times(60'000, "#if 1\n#endif\n")).refused, "");
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
