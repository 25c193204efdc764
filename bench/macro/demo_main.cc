// Command line of gpusched-demo.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "macro/cuda_demo.h"
#include "macro/demo.h"

int main(int argc, char** argv) {
  gpusched::bench::DemoOptions options;
  CLI::App app(
      "The main job: a recommendation service (8 ms a request, 100 ms target, Poisson 75/s) "
      "beside an endless model update, alone and under three policies.");
  int seconds = 20;
  std::string device = "virtual";
  app.add_option("--seconds", seconds, "Length of each measured window")
      ->check(CLI::Range(2, 600))
      ->capture_default_str();
  app.add_option("--trace", options.trace,
                 "Arrivals and sizes from this recorded trace, with a target of 1 s")
      ->check(CLI::ExistingFile);
  app.add_option(
         "--device", device,
         "Where the main job runs: virtual has exact times; cuda-sim is the CUDA device on a "
         "stand-in for its runtime, in small sizes")
      ->check(CLI::IsMember({"virtual", "cuda-sim"}))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  options.length = std::chrono::seconds(seconds);
  std::error_code ignored;
  options.program_folder =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
  const gpusched::Status status = device == "cuda-sim" ? gpusched::bench::RunCudaSimDemo(options)
                                                       : gpusched::bench::RunDemo(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "gpusched-demo: %s\n", status.ToString().c_str());
  return 1;
}
