// Assertions on the daemon's own doing: always on, and deadly.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace gpusched::core {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, what);
  std::abort();
}

}  // namespace gpusched::core

#define GPUSCHED_CHECK(condition) \
  ((condition) ? void(0) : ::gpusched::core::CheckFailed(__FILE__, __LINE__, #condition))
