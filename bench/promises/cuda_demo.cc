// The main job through the CUDA device on the stand-in runtime: results, and who waits for whom.
#include "promises/child.h"
#include "promises/table.h"
#include "support/cuda_sim.h"
#include "support/figures_table.h"

namespace gpusched::bench {

Result<Measurement> MeasureCudaDemo(Length length) {
#ifdef GPUSCHED_HAVE_CUDA
  const Result<CudaSimRun> run = RunCudaSim(ProgramPath("gpuschedd-cuda-sim"),
                                            std::chrono::seconds(length == Length::kFull ? 20 : 8));
  if (!run.ok()) return run.status();
  FiguresTable table;
  for (std::size_t i = 0; i < run->windows.size(); ++i) {
    table.Add(run->policies[i].label, run->windows[i]);
  }
  const auto p99 = [&](std::size_t policy) {
    return static_cast<double>(run->windows[policy].requests->p99.value.count()) / 1e6;
  };
  if (run->windows[2].requests->p99.at_least) {
    return Status(StatusCode::kUnavailable, "NOTHING_DONE",
                  "under preemptive_priority requests were given up");
  }
  const auto& results = run->results;
  // Under round_robin the p99 may be one that was given up: then the true one is longer still.
  return Measurement{
      .figures = {AtMost("results that differ from the CPU's",
                         static_cast<double>(results.requests.wrong + results.update.wrong), "", 0),
                  AtLeast("requests compared", static_cast<double>(results.requests.compared), "",
                          100),
                  AtLeast("update steps compared", static_cast<double>(results.update.compared), "",
                          10),
                  AtMost("preemptive_priority: p99 beside round_robin's", p99(2), "ms", p99(0))},
      .not_run = {},
      .remark = table.Text()};
#else
  (void)length;
  return Measurement{{}, "built without the CUDA toolkit", {}};
#endif
}

}  // namespace gpusched::bench
