// Compiles a corpus of kernels here, rewrites it, and asks the assembler about before and after.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda/ptx/rewrite.h"
#include "promises/child.h"
#include "promises/table.h"

namespace gpusched::bench {
namespace {

namespace text = device::ptx;

constexpr std::chrono::seconds kWithin{600};
constexpr int kArchitectures[] = {75, 80, 90, 100};
// Half a minute each; the short form assembles the first for one architecture and leaves the
// second.
constexpr std::string_view kLarge[] = {"cub", "thrust"};
constexpr int kOnlyForLarge = 90;
constexpr int kFewestKernels = 80;
constexpr double kMostMeanRegisters = 0.5;

class Folder {
 public:
  Folder() {
    std::string path = std::filesystem::temp_directory_path() / "gpusched-ptx-XXXXXX";
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

struct Kernel {
  int registers = 0, spills = 0, shared = 0;
};
using Kernels = std::map<std::string, Kernel>;

// "Compiling entry function 'k' for", "8 bytes spill stores", "Used 40 registers, ... 64 bytes
// smem".
Kernels ReadReport(const std::string& report) {
  Kernels kernels;
  std::istringstream lines(report);
  std::string line;
  Kernel* kernel = nullptr;
  const auto number_before = [&](const char* words) {
    const std::size_t at = line.find(words);
    if (at == std::string::npos) return 0;
    const std::size_t begin = line.find_last_of(" ", at - 2);
    return std::atoi(line.c_str() + (begin == std::string::npos ? 0 : begin));
  };
  while (std::getline(lines, line)) {
    if (const std::size_t at = line.find("Compiling entry function '"); at != std::string::npos) {
      const std::size_t begin = at + 26;
      kernel = &kernels[line.substr(begin, line.find('\'', begin) - begin)];
    }
    if (kernel == nullptr) continue;
    // Device functions have properties of their own; an entry's come first.
    kernel->spills += number_before(" bytes spill stores");
    if (line.find("Used ") != std::string::npos) {
      kernel->registers = number_before(" registers");
      kernel->shared = number_before(" bytes smem");
      kernel = nullptr;
    }
  }
  return kernels;
}

// Blocks of 256 threads on one multiprocessor, by its 65,536 registers in units of 256 a warp and
// its shared memory: what compute capabilities 7.5 to 10.0 have in common (CUDA programming guide).
int BlocksByOccupancy(const Kernel& kernel) {
  constexpr int kRegisters = 65'536, kUnit = 256, kWarp = 32, kWarpsOfBlock = 8,
                kShared = 64 * 1024;
  const int of_warp = (kernel.registers * kWarp + kUnit - 1) / kUnit * kUnit;
  const int by_registers = of_warp == 0 ? 8 : kRegisters / of_warp / kWarpsOfBlock;
  const int by_shared = kernel.shared == 0 ? 8 : kShared / kernel.shared;
  return std::min({by_registers, by_shared, 8});
}

struct Totals {
  int kernels = 0, modules = 0, broken = 0, new_spills = 0, lower = 0, assemblies = 0;
  long registers = 0;
  std::string remark;
};

struct Unit {
  std::string name;
  bool large = false;
};

class Corpus {
 public:
  Corpus(std::string folder, Length length) : folder_(std::move(folder)) {
    for (const auto& entry :
         std::filesystem::directory_iterator(GPUSCHED_SOURCE_FOLDER "/test/fixtures/cuda")) {
      if (entry.path().extension() != ".cu") continue;
      const std::string name = entry.path().stem();
      if (length == Length::kShort && name == kLarge[1]) continue;
      units_.push_back(
          {name, std::find(std::begin(kLarge), std::end(kLarge), name) != std::end(kLarge)});
    }
  }

  // Two at a time; the large ones first.
  Status Compile() {
    std::sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) {
      return std::pair(!a.large, a.name) < std::pair(!b.large, b.name);
    });
    std::string commands;
    for (const Unit& unit : units_) {
      // Clusters are known from 9.0 on.
      const std::string arch = unit.name == "clusters" ? "compute_90" : "compute_75";
      commands += "nvcc -std=c++17 -ptx -arch=" + arch + " " +
                  GPUSCHED_SOURCE_FOLDER "/test/fixtures/cuda/" + unit.name + ".cu -o " + folder_ +
                  "/" + unit.name + ".before.ptx\n";
    }
    return RunAll(commands);
  }

  Status RewriteAll(Totals& totals) {
    for (const Unit& unit : units_) {
      Result<text::Rewritten> rewritten =
          text::Rewrite(ReadText(folder_ + "/" + unit.name + ".before.ptx"));
      if (!rewritten.ok()) return rewritten.status();
      ++totals.modules;
      totals.kernels += static_cast<int>(rewritten->kernels.size());
      std::ofstream(folder_ + "/" + unit.name + ".after.ptx") << rewritten->text;
    }
    return Status::Ok();
  }

  Status Assemble(Length length, Totals& totals) {
    std::string commands;
    std::vector<std::pair<std::string, int>> pairs;
    for (const Unit& unit : units_) {
      for (const int arch : kArchitectures) {
        if (unit.name == "clusters" && arch < 90) continue;
        if (length == Length::kShort && unit.large && arch != kOnlyForLarge) continue;
        pairs.emplace_back(unit.name, arch);
        for (const char* which : {"before", "after"}) {
          const std::string at = folder_ + "/" + unit.name + "." + which;
          const std::string report = at + "." + std::to_string(arch);
          commands += "ptxas -v -arch=sm_" + std::to_string(arch) + " " + at + ".ptx -o " + report +
                      ".cubin > " + report + ".log 2>&1 && touch " + report + ".ok\n";
        }
      }
    }
    if (Status status = RunAll(commands); !status.ok()) return status;
    for (const auto& [name, arch] : pairs) Compare(name, arch, totals);
    return Status::Ok();
  }

 private:
  // Each line a command of its own; one that fails is told by what it leaves.
  Status RunAll(const std::string& commands) {
    const std::string list = folder_ + "/commands";
    std::ofstream(list) << commands;
    const Result<Ran> ran =
        Run({"sh", "-c", "tr '\\n' '\\0' < " + list + " | xargs -0 -P2 -I{} sh -c '{} || true'"},
            kWithin);
    return ran.ok() ? Status::Ok() : ran.status();
  }

  void Compare(const std::string& name, int arch, Totals& totals) {
    const auto path = [&](const char* which, const char* what) {
      return folder_ + "/" + name + "." + which + "." + std::to_string(arch) + "." + what;
    };
    if (!std::filesystem::exists(path("before", "ok"))) return;
    ++totals.assemblies;
    if (!std::filesystem::exists(path("after", "ok"))) {
      ++totals.broken;
      totals.remark +=
          name + ", sm_" + std::to_string(arch) + ": " + ReadText(path("after", "log")) + "\n";
      return;
    }
    const Kernels before = ReadReport(ReadText(path("before", "log")));
    Kernels after = ReadReport(ReadText(path("after", "log")));
    for (const auto& [kernel, was] : before) {
      const Kernel& is = after[kernel];
      ++compared_;
      totals.registers += is.registers - was.registers;
      if (is.spills > was.spills) ++totals.new_spills;
      if (BlocksByOccupancy(is) < BlocksByOccupancy(was)) {
        ++totals.lower;
        totals.remark += kernel.substr(0, 60) + ", sm_" + std::to_string(arch) + ": " +
                         std::to_string(was.registers) + " -> " + std::to_string(is.registers) +
                         " registers\n";
      }
    }
  }

 public:
  double compared() const { return compared_; }

 private:
  std::string folder_;
  std::vector<Unit> units_;
  int compared_ = 0;
};

}  // namespace

Result<Measurement> MeasurePtxAssembles(Length length) {
  for (const char* tool : {"nvcc", "ptxas"}) {
    const Result<Ran> found = Run({"sh", "-c", "command -v " + std::string(tool)}, kWithin);
    if (found.ok() && found->exit_status == 0) continue;
    return Measurement{.figures = {}, .not_run = std::string(tool) + " is missing", .remark = {}};
  }
  const Folder folder;
  Corpus corpus(folder.path(), length);
  Totals totals;
  if (Status status = corpus.Compile(); !status.ok()) return status;
  if (Status status = corpus.RewriteAll(totals); !status.ok()) return status;
  if (Status status = corpus.Assemble(length, totals); !status.ok()) return status;
  if (corpus.compared() == 0) {
    return Status(StatusCode::kInternal, "NOTHING_ASSEMBLED", "no module assembled");
  }
  return Measurement{
      .figures = {AtLeast("kernels in the corpus", totals.kernels, "", kFewestKernels),
                  AtMost("modules that no longer assemble", totals.broken, "", 0),
                  AtMost("registers more, mean",
                         static_cast<double>(totals.registers) / corpus.compared(), "",
                         kMostMeanRegisters),
                  AtMost("kernels with new spills", totals.new_spills, "", 0),
                  AtMost("kernels whose occupancy drops", totals.lower, "", 0)},
      .not_run = {},
      .remark = std::to_string(totals.assemblies) + " assemblies of " +
                std::to_string(totals.modules) + " modules\n" + totals.remark};
}

}  // namespace gpusched::bench
