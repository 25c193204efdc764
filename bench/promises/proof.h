// What the promises that are kept in virtual time share: scenarios from text, runs, the checker.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpusched/status.h"
#include "promises/promise.h"
#include "sim/run.h"
#include "sim/scenario.h"

namespace gpusched::bench {

// Files that the text names are those of the workloads' folder.
Result<sim::Scenario> ScenarioOf(const std::string& name, const std::string& text);

Result<sim::RunFigures> RunUnder(const sim::Scenario& scenario, const std::string& policy,
                                 std::uint64_t seed,
                                 const std::vector<sim::Observer*>& observers = {});

// With the checker watching: what it found is an error that says seed, rule and time.
Result<sim::RunFigures> RunChecked(const sim::Scenario& scenario, const std::string& policy,
                                   std::uint64_t seed);

// The session of that name; it is there.
const sim::SessionFigures& Of(const sim::RunFigures& run, const std::string& name);

// A session's kernel time over what the charged time of all others left of the window.
double PartOfTheRest(const sim::RunFigures& run, const std::string& name);

// A million requests of the mix of sla_mix, one seed; gives the part of them in time.
Result<double> MillionRequests();

inline double AsMs(Duration d) { return static_cast<double>(d.count()) / 1e6; }
inline double AsUs(Duration d) { return static_cast<double>(d.count()) / 1e3; }
std::string Rounded(double value, int digits);

}  // namespace gpusched::bench
