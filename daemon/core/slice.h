// A session's turn on the device, from its first command's start until the last one has drained.
#pragma once

#include <cstdint>

#include "core/job.h"
#include "core/ticket.h"
#include "gpusched/policy/policy.h"

namespace gpusched::core {

struct Slice {
  bool in_use = false;
  bool stopped = false;  // starts nothing more
  std::uint64_t serial = 0;
  SliceReport report;     // granted, charged so far, commands, ends
  Duration used{0};       // estimate of all it has started
  Duration in_flight{0};  // estimate of what has not finished
  Duration applied{0};    // what of it the account has been charged
  std::uint32_t outstanding = 0;
};

// A command on the device.
struct Flight {
  Ticket ticket{};
  std::uint32_t session = 0;  // slot
  std::uint32_t slice = 0;    // index into the slice pool
  Job* job = nullptr;
  std::uint32_t operation = 0;
  std::uint64_t first = 0, count = 0;
  Duration estimate{0};  // expected
  Duration at_most{0};   // expected, plus one spread
  Time submitted{};
  bool alone = false;  // nothing of its class may be in flight beside it
  std::uint32_t priority_class = 0;
  Duration had{0};  // of the device, until a command of another class ended
};

}  // namespace gpusched::core
