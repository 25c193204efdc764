// Command line of gpusched-demo.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "macro/cuda_demo.h"
#include "macro/demo.h"
#include "macro/real_demo.h"
#include "macro/scratch_folder.h"
#include "support/real_stage.h"

namespace gpusched::bench {
namespace {

struct Choice {
  std::string story = "main";
  std::string device = "opencl";
  bool device_given = false;
};

Status RunChosen(const Choice& choice, const DemoOptions& options) {
  if (choice.story == "game") return RunGameDemo(options);
  if (choice.story == "team") return RunTeamDemo(options);
  if (choice.device == "cuda-sim") return RunCudaSimDemo(options);
  if (choice.device == "virtual" || !options.trace.empty()) return RunDemo(options);
  const Status status = RunRealMainJob(options);
  if (choice.device_given || !RealStage::LacksPlatform(status)) return status;
  std::printf("no OpenCL here (Debian package pocl-opencl-icd): on the virtual device instead\n\n");
  return RunDemo(options);
}

}  // namespace
}  // namespace gpusched::bench

int main(int argc, char** argv) {
  gpusched::bench::DemoOptions options;
  gpusched::bench::Choice choice;
  CLI::App app(
      "Services that share a device, alone and under three policies that are swapped while they "
      "run.");
  int seconds = 20;
  app.add_option("story", choice.story,
                 "main: a recommendation service (8 ms a request, 100 ms target, Poisson 75/s) "
                 "beside an endless model update; game: 60 frames a second beside analytics; team: "
                 "three trainings")
      ->check(CLI::IsMember({"main", "game", "team"}))
      ->capture_default_str();
  app.add_option("--seconds", seconds, "Length of each measured window")
      ->check(CLI::Range(2, 600))
      ->capture_default_str();
  app.add_option("--trace", options.trace,
                 "Arrivals and sizes from this recorded trace, with a target of 1 s, on the "
                 "virtual device")
      ->check(CLI::ExistingFile);
  const CLI::Option* device =
      app.add_option(
             "--device", choice.device,
             "Where the main job runs: opencl computes; virtual has exact times; cuda-sim is the "
             "CUDA device on a stand-in for its runtime, in small sizes")
          ->check(CLI::IsMember({"opencl", "virtual", "cuda-sim"}))
          ->capture_default_str();
  app.footer("Exit status: 0; 1 if something failed; 2 for a wrong command line.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // --help is no mistake
  }
  choice.device_given = device->count() > 0;
  if (choice.device_given && choice.device != "opencl" && choice.story != "main") {
    std::fprintf(stderr, "gpusched-demo: %s computes: it runs on --device=opencl only\n",
                 choice.story.c_str());
    return 2;
  }
  if (choice.device_given && choice.device != "virtual" && !options.trace.empty()) {
    std::fprintf(stderr, "gpusched-demo: --trace plays on --device=virtual only\n");
    return 2;
  }

  if (const auto ended = gpusched::bench::AwaitInScratchFolder()) return *ended;
  options.length = std::chrono::seconds(seconds);
  std::error_code ignored;
  options.program_folder =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
  const gpusched::Status status = gpusched::bench::RunChosen(choice, options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "gpusched-demo: %s\n", status.ToString().c_str());
  return 1;
}
