// What a sample says at the end of each service: how late it was, and how much of the device it
// had.
#pragma once

#include <gpusched/client.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "common/loads.h"

namespace samples {

struct ServiceReport {
  std::string service;
  std::string jobs_are;          // "requests", "frames"
  gpusched::Duration target{0};  // zero: none
  gpusched::DeclaredShare share;
  LoadOutcome outcome;
  // How many results were compared with a plain CPU computation, and how many of them differ.
  std::size_t checked = 0, wrong = 0;
  // Figures of its own by name, as a loss; names are words joined by underscores.
  std::vector<std::pair<std::string, double>> figures = {};

  bool failed() const { return wrong > 0 || checked == 0 || !outcome.first_error.ok(); }
};

// To standard output: as text, or as one JSON object.
void Print(const std::string& sample, const gpusched::DeviceInfo& device,
           const std::vector<ServiceReport>& reports, bool json);

}  // namespace samples
