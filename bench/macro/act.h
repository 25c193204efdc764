// One act of a demo: requests, an update or both on a daemon, under each of some policies in turn.
#pragma once

#include <string>
#include <vector>

#include "ctl/admin_client.h"
#include "support/arrivals.h"
#include "support/beside_update.h"
#include "support/figures_table.h"

namespace gpusched::bench {

struct Act {
  // "": each policy's rows carry its own.
  std::string label = {};
  BesideUpdateOptions options;  // all but the requests
  Arrivals turn = {};           // the requests of each policy's turn; empty: none
  Timetable timetable = {};     // its start is set when all is ready
};

// Shows progress meanwhile, and adds rows for each policy; what was computed, compared.
Result<BesideUpdate::Results> Play(admin::AdminClient& admin, const Act& act,
                                   const std::vector<PolicyChoice>& policies, FiguresTable& table);

// How to read such a table.
void PrintLegend();

// The three built-in policies, labelled with what they are told of the services.
std::vector<PolicyChoice> LabelledPolicies();

}  // namespace gpusched::bench
