// Every window of one length that begins where a slice begins.
#pragma once

#include <chrono>

#include "support/ledger.h"

namespace gpusched::bench {

// Calls visit(begin, end) for the window from `from` itself and for every one within [from, to).
template <typename Visit>
void ForEachWindow(const Ledger& ledger, nanoseconds from, nanoseconds to, nanoseconds length,
                   Visit visit) {
  visit(from, from + length);
  for (const nanoseconds start : ledger.Starts(from, to - length)) visit(start, start + length);
}

}  // namespace gpusched::bench
