// Lays figures out in columns as wide as their widest cell.
#include "support/figures_table.h"

#include <algorithm>
#include <cstdio>

namespace gpusched::bench {
namespace {

std::string Optional(const std::optional<double>& part) { return part ? FormatPart(*part) : "-"; }

// Run and service read from the left, figures are compared from the right.
constexpr std::size_t kLeftAligned = 2;

}  // namespace

std::string FormatLatency(const Measured& latency, std::size_t of) {
  if (of == 0) return "-";
  if (latency.value == Duration::max()) return "no answer";
  const double ms = static_cast<double>(latency.value.count()) / 1e6;
  char text[48];
  if (ms < 10'000) {
    std::snprintf(text, sizeof text, "%s%.1f ms", latency.at_least ? "> " : "", ms);
  } else {
    std::snprintf(text, sizeof text, "%s%.1f s", latency.at_least ? "> " : "", ms / 1'000);
  }
  return text;
}

std::string FormatPart(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", part * 100);
  return text;
}

FiguresTable::FiguresTable() {
  rows_.push_back({"run", "service", "jobs", "p50", "p99", "on time", "asked", "got", "slices",
                   "preempted", "rest used"});
}

void FiguresTable::Add(const std::string& run, const WindowFigures& figures) {
  if (figures.requests) AddService(run, *figures.requests);
  if (figures.update) AddService(run, *figures.update);
}

void FiguresTable::AddService(const std::string& run, const ServiceFigures& figures) {
  rows_.push_back({run, figures.service, std::to_string(figures.jobs),
                   FormatLatency(figures.p50, figures.jobs),
                   FormatLatency(figures.p99, figures.jobs), Optional(figures.on_time),
                   Optional(figures.asked), FormatPart(figures.got), std::to_string(figures.slices),
                   std::to_string(figures.preempted), Optional(figures.rest_used)});
}

std::string FiguresTable::Text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      if (i > 0) line += "  ";
      line += i < kLeftAligned ? row[i] + padding : padding + row[i];
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace gpusched::bench
