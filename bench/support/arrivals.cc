// Makes, scales and cuts lists of arrivals; pure arithmetic.
#include "support/arrivals.h"

#include <algorithm>
#include <cmath>

#include "support/random.h"

namespace gpusched::bench {

Arrivals Poisson(double per_second, nanoseconds work, nanoseconds length, std::uint64_t seed) {
  Arrivals arrivals;
  if (per_second <= 0) return arrivals;
  Random random(seed);
  const nanoseconds mean(std::llround(1e9 / per_second));
  for (nanoseconds at = random.Exponential(mean); at < length; at += random.Exponential(mean)) {
    arrivals.push_back({.at = at, .work = work});
  }
  return arrivals;
}

Arrivals EveryAtRandomPhase(nanoseconds period, nanoseconds work, nanoseconds length,
                            std::uint64_t seed) {
  Arrivals arrivals;
  Random random(seed);
  for (nanoseconds start{0}; start + period <= length; start += period) {
    const nanoseconds phase(
        static_cast<std::int64_t>(random.Below(static_cast<std::uint64_t>(period.count()))));
    arrivals.push_back({.at = start + phase, .work = work});
  }
  return arrivals;
}

double LoadOf(const Arrivals& arrivals) {
  if (arrivals.size() < 2) return 0;
  const nanoseconds between = arrivals.back().at - arrivals.front().at;
  if (between <= nanoseconds(0)) return 0;
  const double gap =
      static_cast<double>(between.count()) / static_cast<double>(arrivals.size() - 1);
  double work = 0;
  for (const Arrival& arrival : arrivals) work += static_cast<double>(arrival.work.count());
  return work / (gap * static_cast<double>(arrivals.size()));
}

Arrivals ScaledToLoad(const Arrivals& arrivals, double load) {
  const double now = LoadOf(arrivals);
  if (now <= 0 || load <= 0) return arrivals;
  const double factor = now / load;
  Arrivals scaled = arrivals;
  for (Arrival& arrival : scaled) {
    arrival.at = nanoseconds(std::llround(static_cast<double>(arrival.at.count()) * factor));
  }
  return scaled;
}

Arrivals Stretch(const Arrivals& arrivals, nanoseconds from, nanoseconds length) {
  Arrivals part;
  for (const Arrival& arrival : arrivals) {
    if (arrival.at < from || arrival.at >= from + length) continue;
    part.push_back({.at = arrival.at - from, .work = arrival.work});
  }
  return part;
}

Arrivals StretchOfLoad(const Arrivals& arrivals, std::size_t first, nanoseconds length,
                       double load) {
  Arrivals part;
  nanoseconds work{0};
  const nanoseconds enough(std::llround(static_cast<double>(length.count()) * load));
  for (std::size_t i = first; i < arrivals.size() && work < enough; ++i) {
    part.push_back({.at = arrivals[i].at - arrivals[first].at, .work = arrivals[i].work});
    work += arrivals[i].work;
  }
  return Stretch(ScaledToLoad(part, load), nanoseconds(0), length);
}

Arrivals Repeated(const Arrivals& arrivals, nanoseconds length, int times) {
  Arrivals all;
  for (int turn = 0; turn < times; ++turn) {
    for (const Arrival& arrival : arrivals) {
      if (arrival.at >= length) continue;
      all.push_back({.at = arrival.at + turn * length, .work = arrival.work});
    }
  }
  return all;
}

std::vector<nanoseconds> FirstComeFirstServed(const Arrivals& arrivals) {
  std::vector<nanoseconds> done;
  done.reserve(arrivals.size());
  nanoseconds free_at{0};
  for (const Arrival& arrival : arrivals) {
    free_at = std::max(free_at, arrival.at) + arrival.work;
    done.push_back(free_at);
  }
  return done;
}

double OnTimeAlone(const Arrivals& arrivals, nanoseconds target, nanoseconds from) {
  const std::vector<nanoseconds> done = FirstComeFirstServed(arrivals);
  std::size_t on_time = 0, counted = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    if (arrivals[i].at < from) continue;
    ++counted;
    if (done[i] - arrivals[i].at <= target) ++on_time;
  }
  return counted == 0 ? 1 : static_cast<double>(on_time) / static_cast<double>(counted);
}

}  // namespace gpusched::bench
