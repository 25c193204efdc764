// What a device's slices say about who had it: charged time of a session in any window.
//
// Fed with slices as the daemon's ledger reports them. A slice's charge is spread evenly over its
// time on the device, so that a window may begin or end inside one.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

namespace gpusched::bench {

using std::chrono::nanoseconds;

// Times are on the daemon's clock.
struct LedgerSlice {
  std::uint64_t session = 0;
  nanoseconds started{0}, ended{0};
  nanoseconds charged{0};
};

class Ledger {
 public:
  // Slices of one session in the order of their start; different sessions in any order.
  void Add(const LedgerSlice& slice);

  nanoseconds Charged(std::uint64_t session, nanoseconds from, nanoseconds to) const;
  // Of all sessions together.
  nanoseconds Charged(nanoseconds from, nanoseconds to) const;
  // Charged time over the window's length.
  double Share(std::uint64_t session, nanoseconds from, nanoseconds to) const;

  // Every start of a slice in [from, to], in order: where windows may begin.
  std::vector<nanoseconds> Starts(nanoseconds from, nanoseconds to) const;
  std::vector<std::uint64_t> Sessions() const;

 private:
  struct Entry {
    nanoseconds started, ended, charged;
    nanoseconds charged_before;  // by all earlier entries of the session
  };
  // Charged by the session's entries up to `time`.
  static nanoseconds Until(const std::vector<Entry>& entries, nanoseconds time);

  std::map<std::uint64_t, std::vector<Entry>> sessions_;
};

}  // namespace gpusched::bench
