// Percent of the window, milliseconds, counts.
#include "sim/report.h"

#include <algorithm>
#include <cstdio>

#include "gpusched/units.h"

namespace gpusched::sim {
namespace {

std::string Fixed2(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

double Part(Duration part, Duration whole) {
  return whole == Duration(0)
             ? 0
             : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

std::string Percent(double part) { return Fixed2(part * 100, 2) + "%"; }
std::string Met(const SessionFigures& session) {
  if (session.share.latency_target == Duration(0) || session.outcomes.submitted == 0) return "-";
  return Fixed2(session.PartMet() * 100, 3) + "%";
}
std::string Latency(const SessionFigures& session, int tenths) {
  if (session.outcomes.latencies.empty()) return "-";
  return FormatDuration(Percentile(session.outcomes.latencies, tenths));
}
std::string Asked(const SessionFigures& session, Duration window) {
  return session.promised ? Percent(Part(session.asked, window)) : "-";
}
std::uint64_t Lost(const Outcomes& outcomes) {
  return outcomes.refused + outcomes.failed + outcomes.cancelled + outcomes.skipped +
         outcomes.unfinished();
}
std::string Hex(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      quoted += escaped;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

class JsonObject {
 public:
  JsonObject& Add(const std::string& key, std::uint64_t value) {
    return AddRaw(key, std::to_string(value));
  }
  JsonObject& Add(const std::string& key, Duration value) {
    return AddRaw(key, std::to_string(value.count()));
  }
  JsonObject& Add(const std::string& key, double value) { return AddRaw(key, Fixed2(value, 6)); }
  JsonObject& Add(const std::string& key, const std::string& value) {
    return AddRaw(key, Quoted(value));
  }
  JsonObject& AddRaw(const std::string& key, const std::string& value) {
    text_ += (text_.empty() ? "" : ", ") + Quoted(key) + ": " + value;
    return *this;
  }
  std::string Text() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string Json(const SessionFigures& session, Duration window) {
  const Outcomes& outcomes = session.outcomes;
  JsonObject json;
  json.Add("name", session.name)
      .Add("got", Part(session.charged, window))
      .AddRaw("asked", session.promised ? Fixed2(Part(session.asked, window), 6) : "null")
      .Add("kernel_part", Part(session.kernel, window))
      .Add("charged_ns", session.charged)
      .Add("jobs", outcomes.submitted)
      .Add("done", outcomes.done)
      .Add("met", outcomes.met)
      .Add("refused", outcomes.refused)
      .Add("failed", outcomes.failed)
      .Add("cancelled", outcomes.cancelled)
      .Add("skipped", outcomes.skipped)
      .Add("unfinished", outcomes.unfinished());
  for (const auto& [name, tenths] :
       {std::pair{"p50_ns", 500}, std::pair{"p90_ns", 900}, std::pair{"p99_ns", 990},
        std::pair{"p999_ns", 999}, std::pair{"max_ns", 1'000}}) {
    json.Add(name, Percentile(outcomes.latencies, tenths));
  }
  return json.Text();
}

}  // namespace

std::string Aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (i == 0 ? row[i] + space : space + row[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string Table(const RunFigures& run) {
  std::vector<std::vector<std::string>> rows{
      {"session", "got", "asked", "jobs", "in time", "p50", "p99", "p99.9", "max", "missed out"}};
  for (const SessionFigures& session : run.sessions) {
    rows.push_back({session.name, Percent(Part(session.charged, run.window)),
                    Asked(session, run.window), std::to_string(session.outcomes.done), Met(session),
                    Latency(session, 500), Latency(session, 990), Latency(session, 999),
                    Latency(session, 1'000), std::to_string(Lost(session.outcomes))});
  }
  std::string text = run.scenario + " under " + run.policy + ", seed " + std::to_string(run.seed) +
                     ", " + FormatDuration(run.window) + "\n" + Aligned(rows);
  text += "device charged " + Percent(Part(run.device_charged, run.window)) + ", busy " +
          Percent(Part(run.device_busy, run.window)) + "; " + std::to_string(run.commands) +
          " commands in " + std::to_string(run.slices) + " slices, " +
          std::to_string(run.preemptions) + " preempted, " + std::to_string(run.rescues) +
          " rescues";
  if (run.ejections > 0) text += ", POLICY EJECTED " + std::to_string(run.ejections) + " times";
  text += "; hash " + Hex(run.hash) + "\n";
  for (const std::string& remark : run.remarks) text += "note: " + remark + "\n";
  return text;
}

std::string ComparisonTable(const std::vector<RunFigures>& runs) {
  std::vector<std::vector<std::string>> rows{
      {"session", "policy", "got", "asked", "in time", "p50", "p99", "max"}};
  for (std::size_t i = 0; i < runs.front().sessions.size(); ++i) {
    for (const RunFigures& run : runs) {
      const SessionFigures& session = run.sessions[i];
      rows.push_back({session.name, run.policy.substr(0, run.policy.find(',')),
                      Percent(Part(session.charged, run.window)), Asked(session, run.window),
                      Met(session), Latency(session, 500), Latency(session, 990),
                      Latency(session, 1'000)});
    }
  }
  std::string text = runs.front().scenario + ", seed " + std::to_string(runs.front().seed) + ", " +
                     FormatDuration(runs.front().window) + "\n" + Aligned(rows);
  for (const RunFigures& run : runs) text += run.policy + ": hash " + Hex(run.hash) + "\n";
  for (const std::string& remark : runs.front().remarks) text += "note: " + remark + "\n";
  return text;
}

std::string SweepTable(const std::string& what, const std::vector<std::string>& labels,
                       const std::vector<RunFigures>& runs) {
  std::vector<std::vector<std::string>> rows{
      {what, "session", "got", "asked", "in time", "p50", "p99", "max", "missed out"}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const SessionFigures& session : runs[i].sessions) {
      rows.push_back({labels[i], session.name, Percent(Part(session.charged, runs[i].window)),
                      Asked(session, runs[i].window), Met(session), Latency(session, 500),
                      Latency(session, 990), Latency(session, 1'000),
                      std::to_string(Lost(session.outcomes))});
    }
  }
  std::string text = runs.front().scenario + " under " +
                     runs.front().policy.substr(0, runs.front().policy.find(',')) + "\n" +
                     Aligned(rows);
  for (const std::string& remark : runs.front().remarks) text += "note: " + remark + "\n";
  return text;
}

std::string Json(const std::vector<RunFigures>& runs) {
  std::string text = "[";
  for (const RunFigures& run : runs) {
    std::string sessions, remarks;
    for (const SessionFigures& session : run.sessions) {
      sessions += (sessions.empty() ? "" : ",\n    ") + Json(session, run.window);
    }
    for (const std::string& remark : run.remarks) {
      remarks += (remarks.empty() ? "" : ", ") + Quoted(remark);
    }
    JsonObject json;
    json.Add("scenario", run.scenario)
        .Add("policy", run.policy)
        .Add("seed", run.seed)
        .Add("window_ns", run.window)
        .Add("charged_ns", run.device_charged)
        .Add("busy_ns", run.device_busy)
        .Add("commands", run.commands)
        .Add("steps", run.steps)
        .Add("slices", run.slices)
        .Add("preemptions", run.preemptions)
        .Add("rescues", run.rescues)
        .Add("ejections", run.ejections)
        .Add("hash", Hex(run.hash))
        .AddRaw("notes", "[" + remarks + "]")
        .AddRaw("sessions", "[\n    " + sessions + "]");
    text += (text.size() == 1 ? "\n  " : ",\n  ") + json.Text();
  }
  return text + "\n]\n";
}

}  // namespace gpusched::sim
