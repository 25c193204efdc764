// What a turn of the scheduler costs: a completion and a job in, the next order out.
//
// Under each policy, with few and with thousands of sessions that have work. The time is that of
// both Handle calls, of Advance, and of the little that the workload does itself.
#include <benchmark/benchmark.h>

#include <string>

#include "catalog.h"
#include "micro/allocation_count.h"
#include "micro/decision_workload.h"

namespace gpusched::bench {
namespace {

// Every session has had its turns by then: estimates known, tables and caches warm.
constexpr std::uint64_t kWarmUpRounds = 4;

void DecisionCost(benchmark::State& state, const std::string& policy) {
  const auto sessions = static_cast<std::uint32_t>(state.range(0));
  DecisionWorkload workload(policy, sessions);
  for (std::uint64_t i = 0; i < kWarmUpRounds * sessions; ++i) workload.Complete();

  const std::uint64_t allocated = Allocations();
  for (auto _ : state) workload.Complete();
  const std::uint64_t allocations = Allocations() - allocated;

  if (!workload.sound()) state.SkipWithError("the workload stalled, or its policy was ejected");
  state.counters["allocations"] = benchmark::Counter(static_cast<double>(allocations));
}

void RegisterAll() {
  for (const PolicyKind* kind : PolicyCatalog()) {
    const std::string name(kind->name);
    benchmark::RegisterBenchmark(("decision_cost/" + name).c_str(), DecisionCost, name)
        ->Arg(64)
        ->Arg(10'000);
  }
}

}  // namespace
}  // namespace gpusched::bench

int main(int argc, char** argv) {
  gpusched::bench::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
