// Reads the tests that piglit's OpenCL files carry in their first comment: what to launch with
// which arguments, and what must come out.
//
// The format is that of piglit's program-tester: a [config] section whose entries hold for all
// tests, then [test] sections; "arg_in" and "arg_out" give an argument's index, kind, type and
// values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::test {

struct PiglitType {
  enum class Base : std::uint8_t { kSigned, kUnsigned, kFloating };
  Base base = Base::kSigned;
  std::uint32_t bytes = 4;   // of an element
  std::uint32_t width = 1;   // elements of a vector
  std::uint32_t stride = 1;  // elements it takes room for: a vector of 3 takes 4
};

struct PiglitArgument {
  enum class Kind : std::uint8_t { kValue, kBuffer, kLocal };
  Kind kind = Kind::kValue;
  PiglitType type;
  std::vector<std::uint8_t> in;   // a value's or buffer's bytes before; of local memory its size
  std::vector<std::uint8_t> out;  // what a buffer must hold after; empty: whatever
  double tolerance = 0;
  bool tolerance_is_ulp = false;

  // Whether `got`, as long as `in`, is what was expected.
  bool Accepts(const std::vector<std::uint8_t>& got) const;
};

struct PiglitTest {
  std::string name, kernel;
  std::uint32_t dimensions = 1;
  std::array<std::uint32_t, 3> global{1, 1, 1};
  std::array<std::uint32_t, 3> local{0, 0, 0};  // zeros: the driver's choice
  std::vector<PiglitArgument> arguments;        // by index
};

struct PiglitFile {
  std::string source;
  std::vector<PiglitTest> tests;
};

// UNIMPLEMENTED, with the reason, for what a session or this reader has no form for: images,
// samplers, build options, offsets, halves, tests that expect a build to fail.
Result<PiglitFile> ReadPiglitFile(const std::string& path);
Result<PiglitFile> ParsePiglit(const std::string& text);

}  // namespace gpusched::test
