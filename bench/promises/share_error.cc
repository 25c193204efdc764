// Shares of mixes from three sources, by the checker's own fluid reference: drawn, known to be bad,
// and the worst of both made worse.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "catalog.h"
#include "promises/table.h"
#include "sim/share_mixes.h"
#include "sim/unfair_policies.h"

namespace gpusched::bench {
namespace {

using sim::Mix;
using sim::ShareError;

core::PolicySpec Spec() {
  return {.kind = "weighted_share", .parameters = "", .generation = 1, .source = "promise"};
}
ShareError MeasureOurs(const Mix& mix, bool steady) {
  return sim::Measure(mix, BuildPolicy("weighted_share", std::string_view()).policy, Spec(),
                      steady);
}

// The worst so far by one figure, and the mix it is from.
struct Worst {
  explicit Worst(std::function<double(const ShareError&)> by) : figure(std::move(by)) {}

  std::function<double(const ShareError&)> figure;
  double value = 0;
  Mix mix;

  bool Offer(const Mix& candidate, const ShareError& error) {
    if (figure(error) <= value) return false;
    value = figure(error);
    mix = candidate;
    return true;
  }
  // From the worst found, one change at a time, as long as it gets worse.
  void Climb(int steps, bool steady, sim::Random& random) {
    for (int i = 0; i < steps; ++i) {
      const Mix next = sim::Neighbour(mix, random);
      if (steady && !next.cuttable()) continue;
      Offer(next, MeasureOurs(next, steady));
    }
  }
};

double OverSecond(const ShareError& error) { return 100 * error.over_second; }
double OverTenth(const ShareError& error) { return 100 * error.over_tenth; }
double HelpedSecond(const ShareError& error) { return 100 * error.helped_second; }
// Where sessions have bounds, each that comes or goes makes all ratios others.
bool ByWeightAlone(const Mix& mix) {
  return std::all_of(mix.sessions.begin(), mix.sessions.end(), [](const sim::MixSession& session) {
    return session.share.min == 0 && session.share.max == kWholeDevice;
  });
}

double OfBound(const ShareError& error) { return error.of_bound(); }

// The error of a policy that only looks fair, over a tenth of a second.
template <typename Unfair>
double ErrorOf(const Mix& mix) {
  return OverTenth(sim::Measure(mix, std::make_unique<Unfair>(), Spec(), true));
}

std::string Line(const char* what, const Worst& worst) {
  char text[160];
  std::snprintf(text, sizeof text, "%s: %.3f in '%s' of %zu sessions\n", what, worst.value,
                worst.mix.name.c_str(), worst.mix.sessions.size());
  return text;
}

}  // namespace

Result<Measurement> MeasureShareError(Length length) {
  const bool full = length == Length::kFull;
  const int drawn = full ? 10'000 : 500, climbed = full ? 1'000 : 120;
  sim::Random random(1);
  Worst second(OverSecond), tenth(OverTenth), bound(OfBound), limited(OfBound);
  Worst helped(HelpedSecond);
  const auto offer = [&](const Mix& mix) {
    const bool cuttable = mix.cuttable();
    const ShareError error = MeasureOurs(mix, cuttable);
    if (cuttable) {
      second.Offer(mix, error);
      tenth.Offer(mix, error);
      if (ByWeightAlone(mix)) helped.Offer(mix, error);
    }
    (mix.limited() ? limited : bound).Offer(mix, error);
  };
  for (const Mix& mix : sim::BadMixes()) offer(mix);
  for (int i = 0; i < drawn; ++i) offer(sim::DrawMix(random, i % 2 == 1));
  second.Climb(climbed, true, random);
  tenth.Climb(climbed, true, random);
  helped.Climb(climbed, true, random);
  bound.Climb(climbed, false, random);
  limited.Climb(climbed, false, random);

  const Mix heavy = sim::BadMixes().front();
  Measurement measurement;
  measurement.figures = {AtMost("cuttable: worst window of 1 s", second.value, "points", 1),
                         AtMost("cuttable: worst window of 100 ms", tenth.value, "points", 3),
                         AtMost("by weight alone, not under way: 1 s", helped.value, "points", 1),
                         AtMost("any mix: furthest off, of the bound derived", bound.value, "x", 1),
                         AtMost("any mix with max or strict: the same", limited.value, "x", 1),
                         AtLeast("the bound is near: furthest off, of it", bound.value, "x", 0.5),
                         AtLeast("least virtual time first fails: 100 ms",
                                 ErrorOf<sim::LeastVirtualTime>(heavy), "points", 3),
                         AtLeast("plain weighted round robin fails: 100 ms",
                                 ErrorOf<sim::WeightedRoundRobin>(heavy), "points", 3)};
  measurement.remark = Line("1 s", second) + Line("100 ms", tenth) +
                       Line("1 s, not under way", helped) + Line("of bound", bound) +
                       Line("of bound with max or strict", limited) + std::to_string(drawn) +
                       " drawn mixes; device costs without outliers where all can be cut\n";
  return measurement;
}

}  // namespace gpusched::bench
