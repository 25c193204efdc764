// The latest facts and orders of a simulation, kept as plain numbers and put into words on demand.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/simulation.h"

namespace gpusched::sim {

class Recent final : public Observer {
 public:
  void OnEvent(Time, const core::Event&) override;
  void OnAction(Time, const core::Action&) override;
  std::vector<std::string> Lines() const;  // oldest first

 private:
  // What a person can take in, and as a rule enough to see how it came.
  static constexpr std::size_t kKept = 40;
  struct Record {
    Time at{};
    const char* what = "";
    std::uint64_t session = 0, number = 0, more = 0;
  };
  void Add(const Record& record) { ring_[next_++ % kKept] = record; }

  std::array<Record, kKept> ring_{};
  std::size_t next_ = 0;
};

}  // namespace gpusched::sim
