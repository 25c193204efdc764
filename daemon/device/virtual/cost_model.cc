// The arithmetic of the cost model, in integers, so that it is the same everywhere.
#include "device/virtual/cost_model.h"

#include <algorithm>

namespace gpusched::device {
namespace {

__extension__ using Wide = __int128;
constexpr Wide kBillion = 1'000'000'000;

// SplitMix64 (Steele, Lea and Flood 2014): a bijection that scrambles a counter.
std::uint64_t Scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The sum of three uniform numbers, centred: mean 0, standard deviation 2^21, within three of them.
constexpr int kNoiseBits = 21;
std::int64_t Centred(std::uint64_t random) {
  constexpr std::int64_t kMask = (std::int64_t{1} << kNoiseBits) - 1;
  const auto bits = static_cast<std::int64_t>(random >> 1);
  const std::int64_t sum =
      (bits & kMask) + (bits >> kNoiseBits & kMask) + (bits >> (2 * kNoiseBits) & kMask);
  return 2 * sum - 3 * kMask;
}

}  // namespace

Duration CostModel::DurationOf(const Asked& asked, std::optional<SessionId> previous,
                               std::uint64_t number) const {
  Duration duration = costs_.launch_gap;
  if (asked.cut) duration += costs_.chunk;
  if (previous && *previous != asked.session) duration += costs_.session_switch;
  return duration + Noisy(asked.work, number);
}

Duration CostModel::CopyWork(std::uint64_t bytes) const {
  if (costs_.copy_bandwidth == 0) return Duration::zero();
  const Wide ns = Wide{bytes} * kBillion / costs_.copy_bandwidth;
  return Duration(static_cast<std::int64_t>(std::min<Wide>(ns, kLongestWork.count())));
}

Duration CostModel::Noisy(Duration work, std::uint64_t number) const {
  const std::uint64_t key = Scramble(Scramble(costs_.seed) ^ stream_);
  const std::int64_t centred = Centred(Scramble(key + 2 * number));
  Wide ns = work.count();
  ns += ns * costs_.noise_ppb * centred / (kBillion << kNoiseBits);
  const auto ticket = static_cast<std::int64_t>(Scramble(key + 2 * number + 1) % kBillion);
  if (ticket < costs_.outlier_ppb) ns *= costs_.outlier_factor;
  return Duration(static_cast<std::int64_t>(ns));
}

}  // namespace gpusched::device
