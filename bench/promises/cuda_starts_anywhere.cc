// The daemon with CUDA linked, on a machine without a driver, with a stub, with every GPU hidden.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "promises/child.h"
#include "promises/table.h"
#include "support/daemon_process.h"

namespace gpusched::bench {
#ifdef GPUSCHED_HAVE_CUDA
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

// What the daemon says when only CUDA will do; "started" if it found a GPU.
std::string SaidWith(const Environment& environment) {
  test::DaemonOptions options;
  options.flags = {"--device=cuda"};
  options.environment = environment;
  const auto daemon = test::DaemonProcess::Start(std::move(options));
  return daemon.ok() ? "started" : daemon.status().message();
}

// Whether it starts when anything will do: on OpenCL or, where there is none, when told to take the
// virtual device, which "auto" never takes.
bool Starts(const Environment& environment) {
  for (const char* device : {"--device=auto", "--device=virtual"}) {
    test::DaemonOptions options;
    options.flags = {device};
    options.environment = environment;
    const auto daemon = test::DaemonProcess::Start(std::move(options));
    if (daemon.ok()) return true;
    if (daemon.status().message().find("no real device") == std::string::npos) return false;
  }
  return false;
}

// A folder in which the toolkit's stub goes by the driver's name; "" without a toolkit.
std::string StubFolder() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path stub(GPUSCHED_CUDA_STUB);
  if (!fs::exists(stub, ignored)) return "";
  const fs::path folder =
      fs::temp_directory_path(ignored) / ("gpusched-cuda-stub-" + std::to_string(getpid()));
  fs::create_directories(folder, ignored);
  fs::create_symlink(stub, folder / "libcuda.so.1", ignored);
  return ignored ? "" : folder.string();
}

bool Says(const std::string& said, const std::string& words) {
  return said.find(words) != std::string::npos;
}

}  // namespace
#endif

Result<Measurement> MeasureCudaStartsAnywhere(Length) {
#ifdef GPUSCHED_HAVE_CUDA
  const std::string plain = SaidWith({});
  const bool has_gpu = plain == "started";
  const Environment hidden = {{"CUDA_VISIBLE_DEVICES", ""}};
  const std::string stub_folder = StubFolder();
  const Environment stub = {{"LD_LIBRARY_PATH", stub_folder}};
  const std::string said_hidden = SaidWith(hidden);
  const std::string said_stub = stub_folder.empty() ? "" : SaidWith(stub);
  double told = Says(said_hidden, "CUDA_VISIBLE_DEVICES is set to nothing") ? 1 : 0;
  told += Says(said_stub, "stub") ? 1 : 0;
  // Where there is a GPU, starting with it stands for what cannot be met here.
  told += has_gpu || Says(plain, "no NVIDIA driver") || Says(plain, "finds no GPU") ||
                  Says(plain, "update the driver")
              ? 1
              : 0;
  double started = 0;
  for (const Environment* each : {&hidden, &stub}) started += Starts(*each) ? 1 : 0;
  started += Starts({}) ? 1 : 0;
  std::error_code ignored;
  if (!stub_folder.empty()) std::filesystem::remove_all(stub_folder, ignored);
  return Measurement{
      .figures = {AtLeast("of three surroundings told apart", told, "", 3),
                  AtLeast("of three in which it runs another device", started, "", 3)},
      .not_run = {},
      .remark = "as it is here: " + plain + "\nstub: " + said_stub + "\nhidden: " + said_hidden};
#else
  return Measurement{{}, "built without the CUDA toolkit", {}};
#endif
}

}  // namespace gpusched::bench
