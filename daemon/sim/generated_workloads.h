// Stand-ins for recordings where the workloads' folder is missing: generated, of the same shape.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/loaders.h"

namespace gpusched::sim {

// Poisson arrivals, work around the mean of the conversation trace.
std::vector<Request> GeneratedRequests(std::size_t requests, std::uint64_t seed);
// As many kernels as a ResNet-50 inference, 5 to 120 us each.
std::vector<RecordedOperation> GeneratedChain(std::uint64_t seed, bool whole);
// Eight clients, Gamma and Weibull in turn, two hours of windows.
std::vector<TenantClient> GeneratedTenants(std::uint64_t seed);
// A real-time task beside a best-effort one.
std::vector<DisbTask> GeneratedDisb();
// Ten workers, steps around 450 with stragglers.
std::vector<std::vector<std::int64_t>> GeneratedSteps(std::uint64_t seed);

}  // namespace gpusched::sim
