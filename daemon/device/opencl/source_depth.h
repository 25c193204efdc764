// Whether a source nests deeper than a compiler's stack allows, which ends the daemon with it.
#pragma once

#include <string>
#include <vector>

#include "device/opencl/source_tokens.h"

namespace gpusched::device {

// Where brackets nest too deep, in words; "" if nowhere.
std::string BracketsTooDeep(const std::vector<SourceToken>& tokens);

// The same of statements: of code whose macros are expanded.
std::string StatementsTooLong(const std::vector<SourceToken>& code);

}  // namespace gpusched::device
