// A seed is one history, whoever compiled the scheduler and however.
#include <cstdio>
#include <filesystem>
#include <map>

#include "promises/child.h"
#include "promises/proof.h"
#include "promises/table.h"
#include "sim/swarm.h"

namespace gpusched::bench {
namespace {

constexpr std::uint64_t kSeeds = 500;
// Of those that other builds run: enough to meet every kind of event.
constexpr std::uint64_t kSeedsElsewhere = 100;
constexpr std::chrono::minutes kBuildWithin{20};

// One number for the histories of the seeds 1 to `seeds`.
std::uint64_t HashOf(std::uint64_t seeds) {
  std::uint64_t all = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    all = all * 0x100000001b3u ^ sim::RunSeed(seed).hash;
  }
  return all;
}

std::string Hex(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

struct Build {
  const char *name, *compiler, *type;
};
constexpr Build kBuilds[] = {{"gcc debug", "g++", "Debug"},
                             {"clang debug", "clang++", "Debug"},
                             {"clang release", "clang++", "Release"}};

// Configures and builds floors 0 to 3 in a folder of their own and has them print the hash.
Result<std::string> HashElsewhere(const Build& build) {
  const std::string folder =
      std::string(GPUSCHED_BUILD_FOLDER) + "/determinism-" + build.compiler + "-" + build.type;
  const auto step = [](std::vector<std::string> arguments) -> Result<std::string> {
    const Result<Ran> ran = Run(std::move(arguments), kBuildWithin);
    if (!ran.ok()) return ran.status();
    if (ran->exit_status != 0) {
      const std::size_t from = ran->output.size() > 2'000 ? ran->output.size() - 2'000 : 0;
      return Status(StatusCode::kInternal, "BUILD_FAILED", ran->output.substr(from));
    }
    return ran->output;
  };
  const Result<std::string> configured =
      step({"cmake", "-G", "Ninja", "-S", GPUSCHED_SOURCE_FOLDER, "-B", folder,
            std::string("-DCMAKE_CXX_COMPILER=") + build.compiler,
            std::string("-DCMAKE_BUILD_TYPE=") + build.type, "-DGPUSCHED_TESTS=OFF"});
  if (!configured.ok()) return configured.status();
  const Result<std::string> built = step({"nice", "ninja", "-C", folder, "gpusched-history-hash"});
  if (!built.ok()) return built.status();
  return step({folder + "/bin/gpusched-history-hash", std::to_string(kSeedsElsewhere)});
}

}  // namespace

Result<Measurement> MeasureDeterminism(Length length) {
  Measurement measurement;
  double different = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (sim::RunSeed(seed).hash != sim::RunSeed(seed).hash) ++different;
  }
  measurement.figures = {AtMost(
      "seeds of " + std::to_string(kSeeds) + " that ran differently twice", different, "", 0)};
  if (length == Length::kShort) {
    measurement.remark = "other compilers and build types are built and compared with --full\n";
    return measurement;
  }
  const std::string ours = Hex(HashOf(kSeedsElsewhere));
  double alike = 0, builds = 0;
  for (const Build& build : kBuilds) {
    const Result<Ran> there = Run({"which", build.compiler}, std::chrono::seconds(10));
    if (!there.ok() || there->exit_status != 0) {
      measurement.remark +=
          std::string(build.name) + ": not run, there is no " + build.compiler + "\n";
      continue;
    }
    const Result<std::string> hash = HashElsewhere(build);
    if (!hash.ok()) return hash.status();
    ++builds;
    const bool same = hash->find(ours) != std::string::npos;
    alike += same ? 1 : 0;
    measurement.remark += std::string(build.name) + ": " + *hash;
  }
  measurement.figures.push_back(AtMost("builds that ran differently", builds - alike, "", 0));
  return measurement;
}

}  // namespace gpusched::bench
