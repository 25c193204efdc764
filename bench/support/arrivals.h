// Open-loop arrivals: when each request is due and how much device time it asks for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusched::bench {

using std::chrono::nanoseconds;

struct Arrival {
  nanoseconds at{0};    // after the start of the load; never decreases along a list
  nanoseconds work{0};  // device time it asks for
};
using Arrivals = std::vector<Arrival>;

// Poisson with `per_second` on average, each asking for `work`, within [0, length).
Arrivals Poisson(double per_second, nanoseconds work, nanoseconds length, std::uint64_t seed);

// One in every period, at a random phase of its own: no beat with anything else that is periodic.
Arrivals EveryAtRandomPhase(nanoseconds period, nanoseconds work, nanoseconds length,
                            std::uint64_t seed);

// Device time asked for, over the time in which it arrives (the list's span, its mean gap
// included).
double LoadOf(const Arrivals& arrivals);

// The same requests with time compressed or stretched so that LoadOf is `load`: burstiness is kept,
// nothing is thinned out.
Arrivals ScaledToLoad(const Arrivals& arrivals, double load);

// The requests of [from, from + length), counted from `from`.
Arrivals Stretch(const Arrivals& arrivals, nanoseconds from, nanoseconds length);

// As many requests from the `first` one on as fill `length` at this load, time scaled to fill it.
// Fewer, over a shorter time, where the list ends before.
Arrivals StretchOfLoad(const Arrivals& arrivals, std::size_t first, nanoseconds length,
                       double load);

// The same `length` of requests over and over, `times` times: every turn meets the same arrivals.
Arrivals Repeated(const Arrivals& arrivals, nanoseconds length, int times);

// When each request would be done if the device served nothing else, first come first served,
// without any overhead: the yardstick for a scheduler that gives a service the whole device when it
// needs it.
std::vector<nanoseconds> FirstComeFirstServed(const Arrivals& arrivals);

// The part of the requests due at `from` or later that FirstComeFirstServed ends within `target` of
// their arrival; 1 of none.
double OnTimeAlone(const Arrivals& arrivals, nanoseconds target, nanoseconds from = nanoseconds(0));

}  // namespace gpusched::bench
