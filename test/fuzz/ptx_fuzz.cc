// Breaks bytes, cuts and doubles stretches, and puts words of other texts in between.
#include "fuzz/ptx_fuzz.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>
#include <utility>

#include "device/cuda/ptx/cubin.h"
#include "device/cuda/ptx/fatbin.h"
#include "device/cuda/ptx/rewrite.h"

namespace gpusched::test {
namespace {

namespace text = device::ptx;

// Large starts are cut to this, so that many executions fit a minute.
constexpr std::size_t kMostBytes = 6'000;

constexpr std::string_view kWords[] = {"{",
                                       "}",
                                       "(",
                                       ")",
                                       "[",
                                       "]",
                                       ";",
                                       ",",
                                       ":",
                                       "@%p1 ",
                                       "\"",
                                       "/*",
                                       "//",
                                       ".entry ",
                                       ".func ",
                                       ".param ",
                                       ".align ",
                                       ".shared ",
                                       "%ctaid.x",
                                       "%nctaid",
                                       "bra ",
                                       "call ",
                                       "ret;",
                                       "$L__BB0_1:",
                                       "0x",
                                       "18446744073709551615",
                                       ".reg .b32 %r<4294967295>;",
                                       "brx.idx ",
                                       ".b8 x[99999999999];",
                                       "ld.volatile.global.u32 ",
                                       "atom.global.cas.b32 ",
                                       ".branchtargets ",
                                       std::string_view("\0", 1)};

class Breaker {
 public:
  Breaker(const std::vector<std::string>& starts, std::uint64_t seed)
      : starts_(starts), random_(seed) {}

  std::string Next() {
    std::string bytes = starts_[Below(starts_.size())];
    if (bytes.size() > kMostBytes) {
      // The head with its version and target, and a stretch from anywhere.
      constexpr std::size_t kHead = 400;
      const std::size_t at = Below(bytes.size() - kMostBytes);
      bytes = bytes.substr(0, kHead) + bytes.substr(at, kMostBytes - kHead);
    }
    for (std::size_t i = 1 + Below(6); i > 0 && !bytes.empty(); --i) Break(bytes);
    return bytes;
  }

 private:
  std::size_t Below(std::size_t most) { return most == 0 ? 0 : random_() % most; }
  void Break(std::string& bytes) {
    const std::size_t at = Below(bytes.size());
    const std::size_t length = 1 + Below(std::min<std::size_t>(bytes.size() - at, 200));
    switch (Below(7)) {
      case 0: bytes[at] = static_cast<char>(random_()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(8))); break;
      case 2: bytes.erase(at, length); break;
      case 3: bytes.insert(Below(bytes.size()), bytes.substr(at, length)); break;
      case 4: bytes.resize(at); break;
      case 5: bytes.insert(at, kWords[Below(std::size(kWords))]); break;
      case 6: {
        const std::string& other = starts_[Below(starts_.size())];
        bytes.insert(at, other.substr(Below(other.size()), length));
        break;
      }
    }
  }

  const std::vector<std::string>& starts_;
  std::mt19937_64 random_;
};

// True if a reader took it.
bool Feed(const std::string& bytes) {
  if (text::LooksLikeFatbin(bytes)) return text::ParseFatbin(bytes).ok();
  if (text::LooksLikeElf(bytes)) return text::ParseCubin(bytes).ok();
  const Result<text::Module> module = text::Module::Parse(bytes);
  if (!module.ok()) return false;
  const Result<text::Rewritten> rewritten = text::Rewrite(*module);
  if (!module->functions().empty()) {
    (void)text::ExtractEntry(*module, module->functions().back().name).ok();
  }
  return rewritten.ok();
}

}  // namespace

Result<PtxFuzz> PtxFuzz::Open(const std::string& folder) {
  PtxFuzz fuzz;
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    fuzz.starts_.emplace_back(std::istreambuf_iterator<char>(file),
                              std::istreambuf_iterator<char>());
  }
  if (fuzz.starts_.empty()) {
    return Status(StatusCode::kNotFound, "NO_FILE", "no fixtures in '" + folder + "'");
  }
  return fuzz;
}

FuzzReport PtxFuzz::Run(std::uint64_t executions, std::uint64_t seed) const {
  FuzzReport report;
  const auto feed = [&](const std::string& bytes) {
    const auto before = std::chrono::steady_clock::now();
    if (Feed(bytes)) ++report.accepted;
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - before;
    report.slowest_ms = std::max(report.slowest_ms, took.count());
    ++report.executions;
  };
  for (const std::string& start : starts_) feed(start);
  Breaker breaker(starts_, seed);
  for (std::uint64_t i = 0; i < executions; ++i) feed(breaker.Next());
  return report;
}

}  // namespace gpusched::test
