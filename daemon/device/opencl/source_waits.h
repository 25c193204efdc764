// Which functions of a source may wait for other blocks, told by the loops in its code.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "device/opencl/source_tokens.h"

namespace gpusched::device {

struct SourceWaits {
  // Functions, kernels or not, that may wait for other blocks, and why in words.
  std::map<std::string, std::string> waits;
  std::set<std::string> functions;  // all of them
  // Where something outside of them is not known; "" if nowhere.
  std::string unknown;
};

// Of code whose macros are expanded. Takes time in proportion to it.
SourceWaits FindWaits(const std::vector<SourceToken>& code);

}  // namespace gpusched::device
