// Plain SVG: rectangles for slices, steps for distributions.
#include "sim/picture.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <variant>

#include "gpusched/units.h"

namespace gpusched::sim {
namespace {

// A picture shows this much time; more would be a grey bar.
constexpr Duration kShown = std::chrono::milliseconds(200);
// Recorded from this long on: by then everybody has met everybody.
constexpr Duration kFrom = std::chrono::seconds(2);
// More lanes or lines than this cannot be told apart.
constexpr std::size_t kMostSessions = 16;
constexpr double kWidth = 1'000, kLeft = 140, kLane = 22, kPlot = 260;
constexpr const char* kColours[] = {"#1b6ca8", "#d1495b", "#3b8f5a", "#e0a030",
                                    "#7a4fa3", "#4aa7a7", "#a3633b", "#555555"};

template <typename... Numbers>
std::string Format(const char* form, Numbers... numbers) {
  char text[512];
  std::snprintf(text, sizeof text, form, numbers...);
  return text;
}

std::string Label(double x, double y, const std::string& text, const char* anchor) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '<' ? "&lt;" : c == '&' ? "&amp;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return Format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) + escaped +
         "</text>\n";
}

}  // namespace

void Picture::OnAction(Time, const core::Action& action) {
  const auto* record = std::get_if<core::RecordSlice>(&action);
  if (record == nullptr || record->slice.commands == 0) return;
  const SliceReport& slice = record->slice;
  if (slice.session.serial > std::min(names_.size(), kMostSessions)) return;
  const Time from = Simulation::kStart + kFrom;
  if (slices_.empty() || slice.ended < from) {
    // A run that ends early is drawn from wherever it got to.
    if (!slices_.empty() && slice.ended - slices_.front().started > kShown) slices_.clear();
  } else if (slice.started > slices_.front().started + kShown) {
    return;
  }
  slices_.push_back({slice.session.serial - 1, slice.started, slice.ended, slice.rescue});
}

std::string Picture::Lanes(Time from, Time to, double top) const {
  std::string svg;
  const std::size_t lanes = std::min(names_.size(), kMostSessions);
  const double scale = (kWidth - kLeft) / static_cast<double>((to - from).count());
  const auto x = [&](Time t) { return kLeft + static_cast<double>((t - from).count()) * scale; };
  for (std::size_t i = 0; i < lanes; ++i) {
    const double y = top + kLane * static_cast<double>(i);
    svg += Label(kLeft - 8, y + kLane * 0.65, names_[i], "end");
    svg += Format("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                  kLeft, kWidth, y + kLane - 1, y + kLane - 1);
  }
  for (const Slice& slice : slices_) {
    const double y = top + kLane * static_cast<double>(slice.session) + 2;
    svg += Format("<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"%s/>\n",
                  x(slice.started), y, std::max(0.3, x(slice.ended) - x(slice.started)), kLane - 5,
                  kColours[slice.session % std::size(kColours)],
                  slice.rescue ? " stroke=\"black\"" : "");
  }
  const double y = top + kLane * static_cast<double>(lanes) + 14;
  svg += Label(kLeft, y, "+" + FormatDuration(from - Simulation::kStart), "start");
  svg += Label(kWidth, y, "+" + FormatDuration(to - Simulation::kStart), "end");
  return svg;
}

// The part of jobs that took at most so long, on a logarithmic axis of time.
std::string Picture::Latencies(const RunFigures& run, double top) const {
  Duration least = kForever, most{1};
  for (const SessionFigures& session : run.sessions) {
    for (const Duration latency : session.outcomes.latencies) {
      least = std::min(least, std::max(latency, Duration(1'000)));
      most = std::max(most, latency);
    }
  }
  if (least >= most) return "";
  const double low = std::log10(static_cast<double>(least.count()));
  const double span = std::log10(static_cast<double>(most.count())) - low;
  const auto x = [&](Duration d) {
    const double log = std::log10(static_cast<double>(std::max(d, least).count()));
    return kLeft + (log - low) / span * (kWidth - kLeft);
  };
  std::string svg;
  for (const double part : {0.0, 0.5, 0.9, 1.0}) {
    const double y = top + kPlot * (1 - part);
    svg += Format("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                  kLeft, kWidth, y, y);
    svg += Label(kLeft - 8, y + 4, Format("%.0f %%", part * 100), "end");
  }
  for (double exponent = std::ceil(low); exponent <= low + span; ++exponent) {
    const Duration tick(static_cast<std::int64_t>(std::llround(std::pow(10, exponent))));
    svg += Format("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                  x(tick), x(tick), top, top + kPlot);
    svg += Label(x(tick), top + kPlot + 14, FormatDuration(tick), "middle");
  }
  for (std::size_t i = 0; i < std::min(run.sessions.size(), kMostSessions); ++i) {
    const std::vector<Duration>& latencies = run.sessions[i].outcomes.latencies;
    if (latencies.empty()) continue;
    svg += Format("<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"%s\" points=\"",
                  kColours[i % std::size(kColours)]);
    constexpr int kPoints = 200;
    std::vector<Duration> sorted = latencies;
    std::sort(sorted.begin(), sorted.end());
    for (int point = 0; point <= kPoints; ++point) {
      const std::size_t at = (sorted.size() - 1) * static_cast<std::size_t>(point) / kPoints;
      svg += Format("%.1f,%.1f ", x(sorted[at]), top + kPlot * (1 - point / double{kPoints}));
    }
    svg += "\"/>\n";
  }
  return svg;
}

std::string Picture::Svg(const RunFigures& run) const {
  const double lanes = kLane * static_cast<double>(std::min(names_.size(), kMostSessions));
  const double plot_top = 40 + lanes + 60;
  std::string svg = Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
      "fill=\"white\"/>\n",
      kWidth + 20, plot_top + kPlot + 30);
  svg += Label(kLeft, 24, run.scenario + " under " + run.policy + ": slices", "start");
  if (!slices_.empty()) {
    const Time from = slices_.front().started;
    svg += Lanes(from, std::max(slices_.back().ended, from + kShown), 36);
  }
  svg += Label(kLeft, plot_top - 10, "jobs done within", "start");
  svg += Latencies(run, plot_top);
  return svg + "</svg>\n";
}

}  // namespace gpusched::sim
