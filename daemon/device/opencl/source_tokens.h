// OpenCL C as a list of words: comments, literals' contents and line splices gone, macros apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::device {

struct SourceToken {
  std::string text;  // a name, a number, or one character of punctuation; "" for a string literal
  std::uint32_t line = 0;
  bool after_blank = false;  // which tells "#define f (x)" from "#define f(x)"
  // A macro's own name where it stays a name: within its own body, or where it may not be defined.
  bool stays = false;
};

// A preprocessor line: its words after the '#', "define" and its like first.
using DirectiveLine = std::vector<SourceToken>;

struct SourceTokens {
  std::vector<SourceToken> code;
  // None is empty. What a _Pragma's literal says is one of them, and stands before its line.
  std::vector<DirectiveLine> directives;
  std::vector<std::size_t> places;  // of each: how much of the code stands before it
  // Where compilers do not agree on what is a comment, in words; "" if nowhere.
  std::string doubtful;
};

SourceTokens Tokenize(std::string_view source);

bool IsName(const SourceToken&);
bool IsNumber(const SourceToken&);

}  // namespace gpusched::device
