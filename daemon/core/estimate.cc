// Moving averages that jump when a kernel changes.
#include "core/estimate.h"

#include <algorithm>

#include "gpusched/policy/account.h"

namespace gpusched::core {

namespace {

// An average over about four commands: chunks are alike, and the time of a kernel drifts slowly.
constexpr int kAverageOver = 4;
// The spread remembers longer, over about sixteen: it guards against the rare long one.
constexpr int kSpreadOver = 16;
// A standard deviation is about 5/4 of the mean absolute deviation of a normal distribution.
constexpr std::int64_t kDeviation = 5, kDeviationOver = 4;
// Until a second measurement tells, a sixteenth.
constexpr int kFirstSpread = 16;
// Noise is within three deviations and an eighth.
constexpr int kNoiseSpreads = 3, kNoisePart = 8;
// No command is expected to take longer than this (about 1.2 hours), whatever the arithmetic says.
constexpr std::int64_t kLongest = std::int64_t{1} << 42;

}  // namespace

std::uint32_t Estimates::IndexOf(std::uint64_t key) {
  const auto found = index_.find(key);
  if (found != index_.end()) return found->second;
  if (entries_.size() < limit_) entries_.emplace_back();
  const auto index = static_cast<std::uint32_t>(entries_.size() - 1);
  if (index_.size() < limit_) index_.emplace(key, index);
  return index;
}

Duration Estimates::Scale(std::int64_t per_unit, std::uint64_t units) {
  const Wide scaled = (Wide{per_unit} * units) >> kBits;
  return Duration(static_cast<std::int64_t>(std::min<Wide>(scaled, kLongest)));
}

Duration Estimates::Expect(std::uint32_t index, std::uint64_t units) const {
  return Scale(entries_[index].per_unit, units);
}

Duration Estimates::ExpectAtMost(std::uint32_t index, std::uint64_t units) const {
  return Scale(entries_[index].per_unit + entries_[index].spread, units);
}

std::uint64_t Estimates::UnitsWithin(std::uint32_t index, Duration room) const {
  const Entry& entry = entries_[index];
  const std::int64_t per_unit = entry.per_unit + entry.spread;
  if (per_unit <= 0) return UINT64_MAX;
  const Wide units = (Wide{std::max<std::int64_t>(0, room.count())} << kBits) / per_unit;
  return static_cast<std::uint64_t>(std::clamp<Wide>(units, 1, INT64_MAX));
}

Duration Estimates::ExpectCalmly(std::uint32_t index, std::uint64_t units) const {
  return Scale(std::min(entries_[index].per_unit, entries_[index].before), units);
}

void Estimates::Measured(std::uint32_t index, std::uint64_t units, Duration took) {
  Entry& entry = entries_[index];
  units = std::max<std::uint64_t>(1, units);
  const auto per_unit = [units](Duration time) {
    const Wide exact = (Wide{time.count()} << kBits) / units;
    return static_cast<std::int64_t>(std::min<Wide>(exact, Wide{kLongest} << kBits));
  };
  std::int64_t sample = per_unit(took);
  if (entry.samples > 0 && units < entry.usual / 2 && sample > entry.per_unit) {
    // As much of the excess as the start of a command explains is no news.
    sample = std::max(entry.per_unit, per_unit(std::max(Duration::zero(), took - overhead_)));
    if (sample == entry.per_unit) return;
  }
  entry.usual =
      entry.samples == 0 ? units : (entry.usual * (kAverageOver - 1) + units) / kAverageOver;
  const std::int64_t noise = kNoiseSpreads * entry.spread + entry.per_unit / kNoisePart;
  const int off = sample > entry.per_unit + noise ? 1 : sample < entry.per_unit - noise ? -1 : 0;
  const bool jumped =
      sample > 2 * entry.per_unit || entry.per_unit > 2 * sample || (off != 0 && off == entry.off);
  entry.off = off;
  entry.before = entry.samples == 0 ? sample : entry.per_unit;
  if (entry.samples++ == 0 || jumped) {
    entry.per_unit = sample;
    entry.spread = sample / kFirstSpread;
    return;
  }
  const std::int64_t deviation = std::abs(sample - entry.per_unit);
  entry.per_unit += (sample - entry.per_unit) / kAverageOver;
  entry.spread += (deviation * kDeviation / kDeviationOver - entry.spread) / kSpreadOver;
}

}  // namespace gpusched::core
