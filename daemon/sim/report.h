// Shows the figures of runs: a table for people, JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "sim/run.h"

namespace gpusched::sim {

// A block for each run.
std::string Table(const RunFigures&);
// One table: a row a session, a column group a run. All of one scenario.
std::string ComparisonTable(const std::vector<RunFigures>&);
// One row a run and session, for sweeps: `label` of each run in the first column.
std::string SweepTable(const std::string& what, const std::vector<std::string>& labels,
                       const std::vector<RunFigures>&);
// A list of runs.
std::string Json(const std::vector<RunFigures>&);

// Cells padded to columns, the first row a header; numbers to the right.
std::string Aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace gpusched::sim
