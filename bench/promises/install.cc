// Installs this build into an empty prefix, builds a small program against it alone, and runs it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "promises/child.h"
#include "promises/stage.h"
#include "promises/table.h"

namespace gpusched::bench {
namespace {

constexpr seconds kWithin{50};
constexpr double kMostLines = 25;

// Removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = std::filesystem::temp_directory_path() / "gpusched-install-XXXXXX";
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }  // "": there is none

 private:
  std::string path_;
};

// Each step's words matter only where it fails.
Status RunStep(const std::string& command) {
  const Result<Ran> ran = Run({"sh", "-ec", command}, kWithin);
  if (!ran.ok()) return ran.status();
  if (ran->exit_status == 0) return Status::Ok();
  return Status(
      StatusCode::kInternal, "STEP_FAILED",
      "'" + command + "' ended with " + std::to_string(ran->exit_status) + ":\n" + ran->output);
}

double LinesOf(const std::string& path) {
  std::ifstream file(path);
  return static_cast<double>(
      std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n'));
}

}  // namespace

Result<Measurement> MeasureInstall(Length) {
  for (const char* tool : {"cmake", "c++", "pkg-config"}) {
    if (RunStep("command -v " + std::string(tool)).ok()) continue;
    return Measurement{.figures = {}, .not_run = std::string(tool) + " is missing", .remark = {}};
  }
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    return Status(StatusCode::kInternal, "NO_FOLDER", "no temporary folder; set TMPDIR");
  }
  const std::string prefix = folder.path() + "/prefix", outside = GPUSCHED_OUTSIDE_PROGRAM;
  if (Status status =
          RunStep("cmake --install " GPUSCHED_BUILD_FOLDER " --prefix " + prefix + " >/dev/null");
      !status.ok()) {
    return status;
  }
  test::DaemonOptions installed;
  installed.binary = prefix + "/bin/gpuschedd";
  Result<std::unique_ptr<test::DaemonProcess>> daemon =
      test::DaemonProcess::Start(std::move(installed));
  if (!daemon.ok()) return daemon.status();
  const std::string run = " " + (*daemon)->endpoint();

  const std::string with_cmake = folder.path() + "/with_cmake";
  const Status cmake =
      RunStep("cmake -S " + outside + " -B " + with_cmake + " -DCMAKE_PREFIX_PATH=" + prefix +
              " && cmake --build " + with_cmake + " && " + with_cmake + "/outside" + run);
  const std::string with_pkg_config = folder.path() + "/with_pkg_config";
  const Status pkg_config = RunStep(
      "pc=$(dirname $(find " + prefix + " -name gpusched.pc)); export PKG_CONFIG_PATH=$pc; " +
      "c++ -std=c++20 " + outside + "/outside.cc -o " + with_pkg_config +
      " $(pkg-config --cflags --libs gpusched); LD_LIBRARY_PATH=$(dirname $pc) " + with_pkg_config +
      run);
  std::string remark;
  for (const Status& status : {cmake, pkg_config}) {
    if (!status.ok()) remark += status.ToString() + "\n";
  }
  return Measurement{
      .figures = {AtLeast("find_package: built, and its job was done", cmake.ok() ? 1 : 0, "", 1),
                  AtLeast("pkg-config: built, and its job was done", pkg_config.ok() ? 1 : 0, "",
                          1),
                  AtMost("the program's lines", LinesOf(outside + "/outside.cc"), "", kMostLines)},
      .not_run = {},
      .remark = remark};
}

}  // namespace gpusched::bench
