// Lays out lines and writes JSON; asks the system what machine this is.
#include "promises/report.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "promises/child.h"

namespace gpusched::bench {
namespace {

constexpr int kNameWidth = 16, kFigureWidth = 58, kValueWidth = 20, kBarWidth = 20;
constexpr int kVerdictWidth = 12;

std::string_view Word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds: return "holds";
    case Verdict::kFallsShort: return "falls short";
    case Verdict::kNotRun: return "not run";
  }
  return "";
}

Verdict Of(const Figure& figure) { return figure.holds() ? Verdict::kHolds : Verdict::kFallsShort; }

// Four significant digits, whole numbers whole.
std::string Number(double value) {
  char text[32];
  if (value == std::floor(value) && std::abs(value) < 1e9) {
    std::snprintf(text, sizeof text, "%.0f", value);
  } else {
    std::snprintf(text, sizeof text, "%.*f",
                  std::abs(value) >= 100  ? 1
                  : std::abs(value) >= 10 ? 2
                                          : 3,
                  value);
  }
  return text;
}

std::string WithUnit(double value, const std::string& unit) {
  return Number(value) + (unit.empty() ? "" : " " + unit);
}

std::string_view Sign(const Figure& figure) {
  switch (figure.side) {
    case Figure::Side::kAtMost: return "<=";
    case Figure::Side::kAtLeast: return ">=";
  }
  return "";
}

void Line(std::ostream& out, std::string_view name, const std::string& figure,
          const std::string& value, const std::string& bar, std::string_view verdict,
          double seconds) {
  char line[512];
  std::snprintf(line, sizeof line, "%-*.*s %-*s %*s  %-*s %-*.*s %6.1f s\n", kNameWidth,
                static_cast<int>(name.size()), name.data(), kFigureWidth, figure.c_str(),
                kValueWidth, value.c_str(), kBarWidth, bar.c_str(), kVerdictWidth,
                static_cast<int>(verdict.size()), verdict.data(), seconds);
  out << line;
}

void Indented(std::ostream& out, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out << "    " << line << "\n";
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// JSON has no infinity and no not-a-number.
std::string JsonNumber(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string Processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string Kernel() {
  utsname names{};
  return uname(&names) == 0 ? std::string(names.sysname) + " " + names.release : "unknown";
}

std::string Git(const std::string& arguments) {
  const Result<Ran> ran =
      Run({"sh", "-c", "git -C " GPUSCHED_SOURCE_FOLDER " " + arguments + " 2>/dev/null"},
          std::chrono::seconds(10));
  if (!ran.ok() || ran->exit_status != 0) return "";
  return ran->output.substr(0, ran->output.find('\n'));
}

void TellFigures(std::ostream& out, const Measurement& measured) {
  out << "      \"figures\": [";
  const char* separator = "\n";
  for (const Figure& figure : measured.figures) {
    out << separator << "        {\"figure\": " << Quoted(figure.what)
        << ", \"value\": " << JsonNumber(figure.value) << ", \"unit\": " << Quoted(figure.unit)
        << ", \"side\": " << Quoted(Sign(figure)) << ", \"bar\": " << JsonNumber(figure.bar)
        << ", \"verdict\": " << Quoted(Word(Of(figure))) << "}";
    separator = ",\n";
  }
  out << "\n      ],\n";
}

void TellOne(std::ostream& out, const Told& told) {
  out << "    {\n      \"name\": " << Quoted(told.promise->name)
      << ",\n      \"promise\": " << Quoted(told.promise->sentence) << ",\n";
  if (!told.measured.ok()) {
    out << "      \"error\": " << Quoted(told.measured.status().ToString()) << ",\n";
  } else {
    TellFigures(out, *told.measured);
    if (!told.measured->not_run.empty()) {
      out << "      \"why\": " << Quoted(told.measured->not_run) << ",\n";
    }
    if (!told.measured->remark.empty()) {
      out << "      \"remark\": " << Quoted(told.measured->remark) << ",\n";
    }
  }
  out << "      \"verdict\": " << Quoted(Word(told.verdict()))
      << ",\n      \"seconds\": " << JsonNumber(told.seconds) << "\n    }";
}

}  // namespace

Verdict Told::verdict() const {
  if (!measured.ok()) return Verdict::kFallsShort;
  if (!measured->not_run.empty()) return Verdict::kNotRun;
  const auto& figures = measured->figures;
  const bool all = !figures.empty() && std::all_of(figures.begin(), figures.end(),
                                                   [](const Figure& f) { return f.holds(); });
  return all ? Verdict::kHolds : Verdict::kFallsShort;
}

void TellPeople(std::ostream& out, const Told& told) {
  const std::string_view name = told.promise->name;
  if (!told.measured.ok()) {
    Line(out, name, "could not be measured", "", "", Word(Verdict::kFallsShort), told.seconds);
    Indented(out, told.measured.status().ToString());
    return;
  }
  if (told.verdict() == Verdict::kNotRun) {
    Line(out, name, "", "", "", "not run (" + told.measured->not_run + ")", told.seconds);
    return;
  }
  for (const Figure& figure : told.measured->figures) {
    Line(out, name, figure.what, WithUnit(figure.value, figure.unit),
         std::string(Sign(figure)) + " " + WithUnit(figure.bar, figure.unit), Word(Of(figure)),
         told.seconds);
  }
  Indented(out, told.measured->remark);
  out.flush();
}

void TellSummary(std::ostream& out, const std::vector<Told>& all) {
  std::string short_names;
  int holds = 0, falls_short = 0, not_run = 0;
  double seconds = 0;
  for (const Told& told : all) {
    seconds += told.seconds;
    switch (told.verdict()) {
      case Verdict::kHolds: ++holds; break;
      case Verdict::kNotRun: ++not_run; break;
      case Verdict::kFallsShort:
        ++falls_short;
        short_names += " " + std::string(told.promise->name);
        break;
    }
  }
  out << all.size() << " promises: " << holds << " hold, " << falls_short << " fall short, "
      << not_run << " not run, in " << Number(std::round(seconds)) << " s\n";
  if (falls_short > 0) out << "falls short:" << short_names << "\n";
}

void TellMachines(std::ostream& out, const std::vector<Told>& all, Length length) {
  const std::string commit = Git("rev-parse HEAD");
  const bool dirty = !Git("status --porcelain --untracked-files=no").empty();
  out << "{\n  \"commit\": " << Quoted(commit.empty() ? "unknown" : commit)
      << ",\n  \"changed_since\": " << (dirty ? "true" : "false")
      << ",\n  \"machine\": {\"processor\": " << Quoted(Processor())
      << ", \"cores\": " << std::thread::hardware_concurrency()
      << ", \"kernel\": " << Quoted(Kernel())
      << "},\n  \"length\": " << (length == Length::kFull ? "\"full\"" : "\"short\"")
      << ",\n  \"promises\": [";
  const char* separator = "\n";
  for (const Told& told : all) {
    out << separator;
    TellOne(out, told);
    separator = ",\n";
  }
  out << "\n  ]\n}\n";
}

}  // namespace gpusched::bench
