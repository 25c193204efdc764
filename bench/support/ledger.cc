// Prefix sums over each session's slices answer for a window in logarithmic time.
#include "support/ledger.h"

#include <algorithm>

namespace gpusched::bench {

void Ledger::Add(const LedgerSlice& slice) {
  std::vector<Entry>& entries = sessions_[slice.session];
  const nanoseconds before =
      entries.empty() ? nanoseconds(0) : entries.back().charged_before + entries.back().charged;
  entries.push_back({.started = slice.started,
                     .ended = slice.ended,
                     .charged = slice.charged,
                     .charged_before = before});
}

nanoseconds Ledger::Until(const std::vector<Entry>& entries, nanoseconds time) {
  const auto after = std::partition_point(
      entries.begin(), entries.end(), [time](const Entry& entry) { return entry.started < time; });
  if (after == entries.begin()) return nanoseconds(0);
  const Entry& last = *(after - 1);
  const nanoseconds length = last.ended - last.started;
  if (time >= last.ended || length <= nanoseconds(0)) return last.charged_before + last.charged;
  const double part =
      static_cast<double>((time - last.started).count()) / static_cast<double>(length.count());
  return last.charged_before +
         nanoseconds(static_cast<std::int64_t>(static_cast<double>(last.charged.count()) * part));
}

nanoseconds Ledger::Charged(std::uint64_t session, nanoseconds from, nanoseconds to) const {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return nanoseconds(0);
  return Until(found->second, to) - Until(found->second, from);
}

nanoseconds Ledger::Charged(nanoseconds from, nanoseconds to) const {
  nanoseconds sum{0};
  for (const auto& [session, entries] : sessions_) sum += Until(entries, to) - Until(entries, from);
  return sum;
}

double Ledger::Share(std::uint64_t session, nanoseconds from, nanoseconds to) const {
  return static_cast<double>(Charged(session, from, to).count()) /
         static_cast<double>((to - from).count());
}

std::vector<nanoseconds> Ledger::Starts(nanoseconds from, nanoseconds to) const {
  std::vector<nanoseconds> starts;
  for (const auto& [session, entries] : sessions_) {
    for (const Entry& entry : entries) {
      if (entry.started >= from && entry.started <= to) starts.push_back(entry.started);
    }
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

std::vector<std::uint64_t> Ledger::Sessions() const {
  std::vector<std::uint64_t> result;
  for (const auto& [session, entries] : sessions_) result.push_back(session);
  return result;
}

}  // namespace gpusched::bench
