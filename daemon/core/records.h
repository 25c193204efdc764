// The last things that happened to a scheduler, kept to be read when it finds itself wrong.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "gpusched/policy/types.h"

namespace gpusched::core {

// A ring of plain numbers: writing one costs a store, and nothing reads them but a death.
class Records {
 public:
  void Add(Time at, const char* what, std::uint64_t session, std::uint64_t number) {
    ring_[next_++ % kKept] = {at, what, session, number};
  }

  [[noreturn]] void Die(const char* file, int line, const char* condition) const {
    std::fprintf(stderr, "%s:%d: check failed: %s\nthe last records, oldest first:\n", file, line,
                 condition);
    for (std::uint64_t i = next_ > kKept ? next_ - kKept : 0; i < next_; ++i) {
      const Record& record = ring_[i % kKept];
      std::fprintf(stderr, "  %lld ns  %-16s session %llu  %llu\n",
                   static_cast<long long>(record.at.time_since_epoch().count()), record.what,
                   static_cast<unsigned long long>(record.session),
                   static_cast<unsigned long long>(record.number));
    }
    std::abort();
  }

 private:
  // The facts and orders of the last few turns, also at 64 commands in flight.
  static constexpr std::uint64_t kKept = 256;
  struct Record {
    Time at{};
    const char* what = "";
    std::uint64_t session = 0;
    std::uint64_t number = 0;
  };
  std::array<Record, kKept> ring_{};
  std::uint64_t next_ = 0;
};

}  // namespace gpusched::core
