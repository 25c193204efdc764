// Runs a scenario under a policy from beginning to end, and measures what everybody got.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpusched/status.h"
#include "sim/scenario.h"
#include "sim/simulation.h"
#include "sim/workload.h"

namespace gpusched::sim {

struct PolicyChoice {
  std::string kind, parameters;  // canonical
  // "weighted_share,slice=2ms"; "weighted_share" alone takes the defaults.
  static Result<PolicyChoice> Parse(const std::string& text);
  Result<std::unique_ptr<Policy>> Make() const;
  std::string Text() const { return parameters.empty() ? kind : kind + "," + parameters; }
};

// Between the end of the warm-up and the end of arrivals.
struct SessionFigures {
  std::string name;
  Share share;
  Duration charged{0}, asked{0}, busy{0};
  Duration kernel{0};     // its commands' own time: launch gaps, chunk and switch costs left out
  bool promised = false;  // `asked` means something under the policy
  Outcomes outcomes;
  Duration longest_uncuttable{0}, bound_in_force{0};
  // Of all counted jobs; those refused, failed, dropped or unfinished are missed.
  double PartMet() const;
};

struct RunFigures {
  std::string scenario, policy;
  std::uint64_t seed = 0;
  Duration window{0};
  std::vector<SessionFigures> sessions;
  Duration device_charged{0}, device_busy{0};
  std::uint64_t commands = 0, steps = 0, slices = 0, preemptions = 0, rescues = 0, ejections = 0;
  std::uint64_t hash = 0;
  std::vector<std::string> remarks;
};

struct RunOptions {
  std::uint64_t seed = 1;
  std::vector<Observer*> observers;
  // Called now and then with the part done, 0 to 1000.
  std::function<void(int)> progress;
};

// An error only for a trace that can no longer be read.
Result<RunFigures> Run(const Scenario&, const PolicyChoice&, const RunOptions&);

// Nearest rank, of unordered values; zero of nothing. `tenths` of a percent: 999 is p99.9.
Duration Percentile(std::vector<Duration> values, int tenths);

}  // namespace gpusched::sim
