// Percentiles by nearest rank over all jobs that were due; one that was not done is longer than
// all.
#include "common/service_report.h"

#include <gpusched/units.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

namespace samples {
namespace {

using gpusched::Duration;

struct Counts {
  std::size_t due = 0, done = 0, skipped = 0, failed = 0, on_time = 0;
  Duration charged{0};
  std::vector<Duration> latencies;  // of those done, in order of length
};

Counts Count(const ServiceReport& report) {
  Counts counts;
  counts.due = report.outcome.jobs.size();
  for (const LoadedJob& job : report.outcome.jobs) {
    counts.charged += job.report.charged;
    switch (job.fate) {
      case Fate::kDone: {
        ++counts.done;
        counts.latencies.push_back(job.latency);
        if (report.target == Duration::zero() || job.latency <= report.target) ++counts.on_time;
        break;
      }
      case Fate::kSkipped: ++counts.skipped; break;
      case Fate::kUnfinished:
      case Fate::kFailed: ++counts.failed; break;
    }
  }
  std::sort(counts.latencies.begin(), counts.latencies.end());
  return counts;
}

// Nothing where the one of that rank was not done.
std::optional<Duration> Percentile(const Counts& counts, double percent) {
  const auto rank =
      static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(counts.due) - 1e-9));
  const std::size_t index = std::max<std::size_t>(rank, 1) - 1;
  if (index >= counts.latencies.size()) return std::nullopt;
  return counts.latencies[index];
}

double Milliseconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

double Part(std::size_t part, std::size_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}

double Got(const Counts& counts, const ServiceReport& report) {
  const double elapsed = Milliseconds(report.outcome.elapsed);
  return elapsed > 0 ? Milliseconds(counts.charged) / elapsed : 0;
}

std::string Shown(const std::optional<Duration>& latency) {
  if (!latency) return "missed";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", Milliseconds(*latency));
  return text;
}

std::string Declared(const gpusched::DeclaredShare& share) {
  char text[96];
  std::snprintf(text, sizeof text, "weight %d, priority %d, min %.0f %%, max %.0f %%", share.weight,
                share.priority, share.min * 100, share.max * 100);
  return text;
}

void PrintText(const ServiceReport& report) {
  const Counts counts = Count(report);
  std::printf("%s: %zu %s, %zu done, %zu skipped, %zu failed or unfinished", report.service.c_str(),
              counts.due, report.jobs_are.c_str(), counts.done, counts.skipped, counts.failed);
  if (report.target > Duration::zero()) {
    std::printf("; %.2f %% within %s", 100 * Part(counts.on_time, counts.due),
                gpusched::FormatDuration(report.target).c_str());
  }
  std::printf("\n  latency p50 %s, p99 %s, longest %s\n", Shown(Percentile(counts, 50)).c_str(),
              Shown(Percentile(counts, 99)).c_str(), Shown(Percentile(counts, 100)).c_str());
  std::printf("  device time %.1f ms: %.1f %% of %.1f s (declared: %s)\n",
              Milliseconds(counts.charged), 100 * Got(counts, report),
              Milliseconds(report.outcome.elapsed) / 1e3, Declared(report.share).c_str());
  for (const auto& [name, value] : report.figures) {
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    std::printf("  %s %.7g\n", words.c_str(), value);
  }
  std::printf("  results: %zu compared with a plain computation on the CPU, %zu wrong\n",
              report.checked, report.wrong);
  if (!report.outcome.first_error.ok()) {
    std::printf("  first error: %s\n", report.outcome.first_error.ToString().c_str());
  }
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    char code[8];
    std::snprintf(code, sizeof code, "\\u%04x",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    if (c == '"' || c == '\\') {
      quoted += std::string("\\") + c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += code;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string Number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string NumberOrNull(const std::optional<Duration>& latency) {
  return latency ? Number(Milliseconds(*latency)) : "null";
}

std::string Json(const ServiceReport& report) {
  const Counts counts = Count(report);
  std::string text = "{\"service\": " + Quoted(report.service);
  const auto add = [&text](const char* name, const std::string& value) {
    text += ", \"" + std::string(name) + "\": " + value;
  };
  add("due", std::to_string(counts.due));
  add("done", std::to_string(counts.done));
  add("skipped", std::to_string(counts.skipped));
  add("failed", std::to_string(counts.failed));
  if (report.target > Duration::zero()) {
    add("target_ms", Number(Milliseconds(report.target)));
    add("on_time", Number(Part(counts.on_time, counts.due)));
  }
  add("p50_ms", NumberOrNull(Percentile(counts, 50)));
  add("p99_ms", NumberOrNull(Percentile(counts, 99)));
  add("longest_ms", NumberOrNull(Percentile(counts, 100)));
  add("charged_ms", Number(Milliseconds(counts.charged)));
  add("elapsed_ms", Number(Milliseconds(report.outcome.elapsed)));
  add("got", Number(Got(counts, report)));
  add("weight", std::to_string(report.share.weight));
  add("priority", std::to_string(report.share.priority));
  add("checked", std::to_string(report.checked));
  add("wrong", std::to_string(report.wrong));
  for (const auto& [name, value] : report.figures) add(name.c_str(), Number(value));
  if (!report.outcome.first_error.ok()) {
    add("error", Quoted(report.outcome.first_error.ToString()));
  }
  return text + "}";
}

}  // namespace

void Print(const std::string& sample, const gpusched::DeviceInfo& device,
           const std::vector<ServiceReport>& reports, bool json) {
  if (!json) {
    std::printf("%s on device %d: %s (%s)\n", sample.c_str(), device.index, device.name.c_str(),
                device.backend.c_str());
    for (const ServiceReport& report : reports) PrintText(report);
    return;
  }
  std::string services;
  for (const ServiceReport& report : reports) {
    services += (services.empty() ? "" : ", ") + Json(report);
  }
  std::printf("{\"sample\": %s, \"device\": %s, \"backend\": %s, \"services\": [%s]}\n",
              Quoted(sample).c_str(), Quoted(device.uuid).c_str(), Quoted(device.backend).c_str(),
              services.c_str());
}

}  // namespace samples
