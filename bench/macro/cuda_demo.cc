// Says what runs where, runs it, and prints the figures.
#include "macro/cuda_demo.h"

#include <cstdio>

#include "gpusched/units.h"
#include "macro/progress_line.h"
#include "support/cuda_sim.h"
#include "support/figures_table.h"

namespace gpusched::bench {

Status RunCudaSimDemo(const DemoOptions& options) {
  std::printf(
      "The main job through the CUDA device: the daemon is linked with a stand-in for the CUDA\n"
      "runtime, which executes the rewritten PTX on the CPU. Sizes are small, and times are those\n"
      "of an interpreter: they say nothing of a GPU.\n");
  std::fflush(stdout);
  ProgressLine line;
  const auto tick = [&](const PolicyChoice& policy, Duration into) {
    line.Show(policy.label + ": " + std::to_string(into / std::chrono::seconds(1)) + " of " +
              std::to_string(options.length.count()) + " s");
  };
  const Result<CudaSimRun> run =
      RunCudaSim(options.program_folder + "/gpuschedd-cuda-sim", options.length, tick);
  line.Done();
  if (!run.ok()) return run.status();
  std::printf("\nOn %s: %.0f requests a second of %s, beside an update in steps of %s.\n\n",
              run->device.c_str(), run->requests_per_second, FormatDuration(run->request).c_str(),
              FormatDuration(run->update).c_str());
  FiguresTable table;
  for (std::size_t i = 0; i < run->windows.size(); ++i) {
    table.Add(run->policies[i].label, run->windows[i]);
  }
  std::printf("%s\n", table.Text().c_str());
  const std::size_t compared = run->results.requests.compared + run->results.update.compared;
  const std::size_t wrong = run->results.requests.wrong + run->results.update.wrong;
  std::printf("%zu results compared with the CPU's, %zu wrong\n", compared, wrong);
  if (wrong == 0) return Status::Ok();
  return Status(StatusCode::kInternal, "WRONG_RESULTS",
                std::to_string(wrong) + " results differ from the CPU's");
}

}  // namespace gpusched::bench
