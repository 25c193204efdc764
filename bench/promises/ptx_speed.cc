// One megabyte of compiled kernels rewritten, beside the time to copy it and to find its lines.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "device/cuda/ptx/rewrite.h"
#include "promises/table.h"

namespace gpusched::bench {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::size_t kBytes = 1'000'000;
constexpr double kMostTimes = 50, kMostMs = 100;
// The least of many: what the machine does besides is not ours.
constexpr int kRuns = 25, kFullRuns = 200;

// The fixtures again and again, each time under other names.
std::string Text() {
  std::string result;
  for (int copy = 0; result.size() < kBytes; ++copy) {
    for (const char* name : {"grids", "shared"}) {
      std::ifstream file(GPUSCHED_SOURCE_FOLDER "/test/fixtures/ptx/compiled/" + std::string(name) +
                         ".ptx");
      std::string text(std::istreambuf_iterator<char>(file), {});
      const std::string mark = "_Z", marked = "_c" + std::to_string(copy) + "Z";
      for (std::size_t at = text.find(mark); at != std::string::npos;
           at = text.find(mark, at + marked.size())) {
        text.replace(at, mark.size(), marked);
      }
      // One header for all.
      const std::size_t header = text.find(".address_size 64") + 16;
      result += result.empty() ? text : text.substr(header);
    }
  }
  return result;
}

// How a line reader would: one search for each line.
std::size_t CopyAndCountLines(const std::string& text, std::string& copy) {
  copy.assign(text);
  std::size_t lines = 0;
  for (std::size_t at = copy.find('\n'); at != std::string::npos; at = copy.find('\n', at + 1))
    ++lines;
  return lines;
}

template <typename F>
double LeastMs(int runs, F run) {
  double least = 1e9;
  for (int i = 0; i < runs; ++i) {
    const auto before = std::chrono::steady_clock::now();
    run();
    least = std::min(least, Milliseconds(std::chrono::steady_clock::now() - before).count());
  }
  return least;
}

}  // namespace

Result<Measurement> MeasurePtxSpeed(Length length) {
  const int runs = length == Length::kFull ? kFullRuns : kRuns;
  const std::string text = Text();
  std::string copy;
  std::size_t lines = 0;
  const double scan = LeastMs(runs, [&] { lines = CopyAndCountLines(text, copy); });
  Status failed;
  const double rewrite = LeastMs(runs, [&] {
    if (const auto rewritten = device::ptx::Rewrite(text); !rewritten.ok())
      failed = rewritten.status();
  });
  if (!failed.ok()) return failed;
  const double megabytes = static_cast<double>(text.size()) / kBytes;
  return Measurement{
      .figures = {AtMost("rewriting, over copying and scanning", rewrite / scan, "x", kMostTimes),
                  AtMost("rewriting 1 MB", rewrite / megabytes, "ms", kMostMs)},
      .not_run = {},
      .remark = std::to_string(text.size()) + " bytes, " + std::to_string(lines) +
                " lines; copied and scanned in " + std::to_string(scan) + " ms\n"};
}

}  // namespace gpusched::bench
