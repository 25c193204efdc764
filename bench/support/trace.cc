// Parses the two trace formats line by line, every number checked.
#include "support/trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "support/random.h"

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
constexpr std::string_view kMooncakeHeader = "timestamp_ms,input_length,output_length";
// Mooncake's stamps are multiples of this.
constexpr milliseconds kMooncakeBatch{3'000};
// The means of azure_llm_2023_conv_first_half.csv: tokens, requests a second.
constexpr nanoseconds kContextMean{1'237}, kGeneratedMean{221};
constexpr double kRequestsPerSecond = 5.5;

Status BadTrace(const std::string& path, std::size_t line, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, "BAD_TRACE",
                path + ":" + std::to_string(line) + ": " + what);
}

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

std::optional<std::int64_t> Number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// "2023-11-16 18:15:46.6805900" as time since 1970, read as UTC: only differences matter.
std::optional<nanoseconds> AzureStamp(const std::string& text) {
  int year, month, day, hour, minute, consumed = 0;
  double second;
  if (std::sscanf(text.c_str(), "%d-%d-%d %d:%d:%lf%n", &year, &month, &day, &hour, &minute,
                  &second, &consumed) != 6 ||
      consumed != static_cast<int>(text.size())) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + nanoseconds(std::llround(second * 1e9));
}

// "1500" milliseconds.
std::optional<nanoseconds> MooncakeStamp(const std::string& text) {
  const std::optional<std::int64_t> value = Number(text);
  if (!value || *value > milliseconds::max().count() / 1'000'000) return std::nullopt;
  return milliseconds(*value);
}

// Requests that share a stamp are spread evenly over the batch's length.
void SpreadBatches(Arrivals& arrivals) {
  for (std::size_t first = 0; first < arrivals.size();) {
    std::size_t last = first;
    while (last < arrivals.size() && arrivals[last].at == arrivals[first].at) ++last;
    const auto size = static_cast<std::int64_t>(last - first);
    for (std::size_t i = first; i < last; ++i) {
      arrivals[i].at += nanoseconds(kMooncakeBatch) * static_cast<std::int64_t>(i - first) / size;
    }
    first = last;
  }
}

}  // namespace

nanoseconds LanguageModelWork(std::int64_t context_tokens, std::int64_t generated_tokens) {
  return milliseconds(2) + context_tokens * std::chrono::microseconds(20) +
         generated_tokens * std::chrono::microseconds(500);
}

Result<Trace> ReadTrace(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return Status(StatusCode::kNotFound, "NO_TRACE", "cannot read the trace " + path);
  }
  std::string line;
  std::getline(file, line);
  const bool azure = line.starts_with(kAzureHeader);
  if (!azure && !line.starts_with(kMooncakeHeader)) {
    return BadTrace(path, 1,
                    "not a trace with arrivals and sizes; the first line must be '" +
                        std::string(kAzureHeader) + "' or begin with '" +
                        std::string(kMooncakeHeader) + "'");
  }

  Trace trace{.name = std::filesystem::path(path).stem().string(), .remark = {}, .arrivals = {}};
  for (std::size_t number = 2; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const std::vector<std::string_view> fields = Split(line);
    if (fields.size() < 3) return BadTrace(path, number, "fewer than three columns");
    const std::string stamp(fields[0]);
    const std::optional<nanoseconds> at = azure ? AzureStamp(stamp) : MooncakeStamp(stamp);
    const std::optional<std::int64_t> context = Number(fields[1]), generated = Number(fields[2]);
    constexpr std::int64_t kMostTokens = 100'000'000;  // beyond it the work would overflow
    if (!at || !context || !generated || *context > kMostTokens || *generated > kMostTokens) {
      return BadTrace(path, number, "not a time and two token counts: " + line);
    }
    trace.arrivals.push_back({.at = *at, .work = LanguageModelWork(*context, *generated)});
  }
  if (trace.arrivals.size() < 2) return BadTrace(path, 2, "fewer than two requests");
  const auto earlier = [](const Arrival& a, const Arrival& b) { return a.at < b.at; };
  std::stable_sort(trace.arrivals.begin(), trace.arrivals.end(), earlier);
  if (!azure) {
    SpreadBatches(trace.arrivals);
    trace.remark = "stamps are rounded to 3 s; each batch is spread evenly over its 3 s";
  }
  const nanoseconds start = trace.arrivals.front().at;
  for (Arrival& arrival : trace.arrivals) arrival.at -= start;
  return trace;
}

std::optional<std::string> RequestTraceFolder() {
  const char* root = std::getenv("GPUSCHED_WORKLOADS");
  const std::filesystem::path folder =
      std::filesystem::path(root != nullptr ? root : "../shared/workloads") / "requests";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return std::nullopt;
  return folder.string();
}

Trace GeneratedTrace(std::size_t requests, std::uint64_t seed) {
  Trace trace{.name = "generated",
              .remark = "no recorded trace was found: arrivals and sizes are generated",
              .arrivals = {}};
  Random random(seed);
  const nanoseconds gap(std::llround(1e9 / kRequestsPerSecond));
  for (nanoseconds at{0}; trace.arrivals.size() < requests; at += random.Exponential(gap)) {
    const std::int64_t context = random.Exponential(kContextMean).count();
    const std::int64_t generated = random.Exponential(kGeneratedMean).count();
    trace.arrivals.push_back({.at = at, .work = LanguageModelWork(context, generated)});
  }
  return trace;
}

}  // namespace gpusched::bench
