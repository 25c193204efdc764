// Expands the macros that a source defines itself, so that its code can be read as it will run.
//
// Which branch of a conditional the compiler takes is not known here, so every branch is read. A
// name that has several definitions, or may have none, becomes all of them, one after the other:
// good enough for whoever looks for what may be there, and never for who counts. Where that would
// tear the brackets apart, a mark stands instead: nothing is known of that place.
#pragma once

#include <string>
#include <vector>

#include "device/opencl/source_tokens.h"

namespace gpusched::device {

struct ExpandedCode {
  std::vector<SourceToken> code;        // what a macro made is on the line of its use
  std::vector<SourceToken> conditions;  // what stands behind every #if and #elif
  bool too_much = false;                // it was given up: both end early
};

// Work and size are bounded by the source's own, whatever it defines.
ExpandedCode ExpandMacros(const SourceTokens&);

// The mark, and the name of the macro that it stands for.
bool IsUnknown(const SourceToken&);
std::string UnknownMacro(const SourceToken&);

}  // namespace gpusched::device
