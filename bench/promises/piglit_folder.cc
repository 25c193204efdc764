// Looks for the package and unpacks the .cl files only: installing it takes 2 GB.
#include "promises/piglit_folder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "promises/child.h"

namespace gpusched::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kUnpackWithin{60};

bool IsPackage(const fs::path& path) {
  return path.extension() == ".deb" && path.filename().string().starts_with("piglit");
}

// Builds are large: only what lies near the top is looked at.
fs::path FindPackage() {
  std::error_code ignored;
  const fs::path build = GPUSCHED_BUILD_FOLDER;
  for (const fs::path& folder : {build, build.parent_path(), build.parent_path() / "piglit"}) {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (IsPackage(entry.path())) return entry.path();
    }
  }
  return {};
}

std::vector<std::string> ClFiles(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".cl") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Status Unpack(const fs::path& package, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  const Result<Ran> ran = Run(
      {"/bin/sh", "-c", "dpkg-deb --fsys-tarfile \"$0\" | tar -x -C \"$1\" --wildcards '*/cl/*.cl'",
       package.string(), to.string()},
      kUnpackWithin);
  if (!ran.ok()) return ran.status();
  if (ran->exit_status == 0) return Status::Ok();
  return Status(StatusCode::kInternal, "UNPACKING_FAILED", package.string() + ": " + ran->output);
}

}  // namespace

Result<std::vector<std::string>> PiglitFiles() {
  const char* named = std::getenv("GPUSCHED_PIGLIT");
  fs::path source = named != nullptr ? fs::path(named) : FindPackage();
  if (IsPackage(source)) {
    const fs::path unpacked = fs::path(GPUSCHED_BUILD_FOLDER) / "piglit_cl";
    if (ClFiles(unpacked).empty()) {
      if (Status status = Unpack(source, unpacked); !status.ok()) return status;
    }
    source = unpacked;
  }
  std::vector<std::string> files = source.empty() ? std::vector<std::string>() : ClFiles(source);
  if (!files.empty()) return files;
  return Status(StatusCode::kNotFound, "NO_PIGLIT",
                "piglit's files are not here: apt-get download piglit in " +
                    fs::path(GPUSCHED_BUILD_FOLDER).parent_path().string() +
                    ", or set GPUSCHED_PIGLIT to a folder of them");
}

}  // namespace gpusched::bench
