// Counts what the program allocates; linking allocation_count.cc replaces operator new.
#pragma once

#include <cstdint>

namespace gpusched::bench {

// Calls of operator new so far, on all threads.
std::uint64_t Allocations();

}  // namespace gpusched::bench
