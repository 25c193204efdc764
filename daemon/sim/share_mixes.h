// Mixes of sessions, and how far what each got was from what it asked: the proof of shares.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/event.h"
#include "gpusched/policy/policy.h"
#include "sim/random.h"
#include "sim/rules.h"

namespace gpusched::sim {

struct MixSession {
  Share share;
  Duration job{1'000'000};  // device time of its jobs
  int outstanding = 0;  // that it keeps; 0: so many that there is always a slice of work waiting
  bool cuttable = true;
  bool copies = false;  // every second operation is one
  Duration joins{0};    // after the begin
  Duration stays{0};    // zero: to the end
  Duration works{0};    // zero: always; else so long, then as long not
};

struct Mix {
  std::string name;
  std::vector<MixSession> sessions;
  Duration length{1'300'000'000};
  std::uint64_t seed = 1;  // of the device's noise

  bool cuttable() const;  // all of it
  bool limited() const;   // somebody has a max, or is strict
};

// 2 to 64 sessions of weights 1 to 10,000, with min, max and strict, that join, leave and rest.
// `uncuttable`: some of their commands cannot be cut.
Mix DrawMix(Random&, bool uncuttable);
// The ones that are known to be bad for somebody.
std::vector<Mix> BadMixes();
// The same with one thing changed.
Mix Neighbour(const Mix&, Random&);

struct ShareError {
  // Of the device, the worst window in which a session had work throughout; windows begin and end
  // with slices.
  double over_second = 0, over_tenth = 0;
  // Of the second's, what could be helped: without what was under way when somebody came.
  double helped_second = 0;
  // Device time, over any window, and the longest slice or command there was.
  Duration furthest{0}, longest{0};
  // The furthest, less what the moves of par allow.
  Duration unmoved{0};
  std::uint64_t commands = 0;
  std::vector<Violation> violations;

  // Of the bound that the policy derives (policies/weighted_share.h).
  double of_bound() const {
    return longest.count() > 0
               ? static_cast<double>(unmoved.count()) / static_cast<double>(2 * longest.count())
               : 0;
  }
};

// With the device's ordinary costs, but for outliers where `steady`: a command of ten times its
// estimate is a longer command, not a longer slice.
ShareError Measure(const Mix&, std::unique_ptr<Policy>, const core::PolicySpec&, bool steady);

}  // namespace gpusched::sim
