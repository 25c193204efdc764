// What must not be cut, one fixture each, and whether it is refused with its reason.
#pragma once

#include <string>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::test {

struct Refusal {
  std::string fixture;
  std::string expected;  // words that the reason must hold
  std::string reason;    // what was said; "" if the kernel may be cut
  bool holds() const { return reason.find(expected) != std::string::npos; }
};

// The folder is test/fixtures/ptx/unsafe.
Result<std::vector<Refusal>> CheckRefusals(const std::string& folder);

}  // namespace gpusched::test
