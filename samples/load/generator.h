// Makes requests, open or closed loop, and keeps what became of each.
#pragma once

#include <gpusched/client.h>

#include <cstdint>
#include <vector>

#include "arguments.h"

namespace load {

// Every request that was sent is done (its latency is kept), refused or failed.
struct Outcome {
  // From the instant at which each finished request was meant to be submitted to its report.
  std::vector<gpusched::Duration> latencies;
  std::uint64_t sent = 0;
  std::uint64_t refused = 0;  // at the call
  std::uint64_t failed = 0;   // cancelled, skipped and unfinished ones too
  gpusched::Duration charged{0};
  gpusched::Duration longest_queued{0};
  gpusched::Duration elapsed{0};  // from the first request to the last answer
  gpusched::Status first_error;
  gpusched::Status broke_off;  // what ended the load before its time: a lost daemon, a kill
};

// Poisson arrivals that do not care how the service fares; each is one submission of the template.
Outcome RunOpenLoop(const Arguments& arguments, gpusched::Session& session,
                    const gpusched::Template& request);
// A new request as soon as one is done. `outstanding` of them fit the session's window.
Outcome RunClosedLoop(const Arguments& arguments, gpusched::Session& session,
                      const gpusched::Template& request);

}  // namespace load
