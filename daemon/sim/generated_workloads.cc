// Shapes taken from the recordings' own means and spreads.
#include "sim/generated_workloads.h"

#include <algorithm>

#include "sim/random.h"

namespace gpusched::sim {

std::vector<Request> GeneratedRequests(std::size_t requests, std::uint64_t seed) {
  // Of the conversation trace: 5.5 requests a second, 1,155 context and 211 generated tokens.
  constexpr Duration kGap = std::chrono::microseconds(181'800);
  const Duration mean = LanguageModelWork(1'155, 211);
  Random random(seed);
  std::vector<Request> generated;
  Duration at{0};
  for (std::size_t i = 0; i < requests; ++i) {
    const Duration work = random.Scaled(mean, random.GammaShaped(2 * kOne));
    generated.push_back({.at = at, .work = std::max<Duration>(work, std::chrono::milliseconds(2))});
    at += random.Scaled(kGap, random.Exponential());
  }
  return generated;
}

std::vector<RecordedOperation> GeneratedChain(std::uint64_t seed, bool whole) {
  constexpr std::size_t kKernels = 175;
  Random random(seed);
  std::vector<RecordedOperation> chain;
  for (std::size_t i = 0; i < kKernels; ++i) {
    const Duration time =
        random.Between(std::chrono::microseconds(5), std::chrono::microseconds(120));
    RecordedOperation operation;
    operation.work = LaunchOf(time, 16 + random.Below(400), seed << 16 ^ (i + 1), !whole);
    chain.push_back(operation);
  }
  return chain;
}

std::vector<TenantClient> GeneratedTenants(std::uint64_t seed) {
  constexpr int kClients = 8, kWindows = 12;
  Random random(seed);
  std::vector<TenantClient> clients;
  for (int c = 0; c < kClients; ++c) {
    TenantClient client{.name = std::to_string(c), .windows = {}};
    for (int w = 0; w < kWindows; ++w) {
      client.windows.push_back(
          {.from = kRateWindow * w,
           .mean_gap = random.Between(std::chrono::milliseconds(20), std::chrono::seconds(2)),
           .family = c % 2 == 0 ? Family::kGamma : Family::kWeibull,
           .shape = random.Between(kOne / 4, kOne)});
    }
    clients.push_back(std::move(client));
  }
  return clients;
}

std::vector<DisbTask> GeneratedDisb() {
  return {{.name = "vision_rt",
           .model = "",
           .load = DisbTask::Load::kPeriodic,
           .gap = std::chrono::milliseconds(10),
           .real_time = true},
          {.name = "vision_be",
           .model = "",
           .load = DisbTask::Load::kClosedLoop,
           .gap = Duration(0),
           .real_time = false}};
}

std::vector<std::vector<std::int64_t>> GeneratedSteps(std::uint64_t seed) {
  constexpr int kWorkers = 10, kSteps = 300;
  Random random(seed);
  std::vector<std::vector<std::int64_t>> workers(kWorkers);
  for (auto& steps : workers) {
    for (int i = 0; i < kSteps; ++i) {
      steps.push_back(random.Between(400, 500) + (random.Once(50) ? random.Between(50, 400) : 0));
    }
  }
  return workers;
}

}  // namespace gpusched::sim
