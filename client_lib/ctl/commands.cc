// The operator's commands.
#include "ctl/commands.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "ctl/json.h"
#include "ctl/table.h"
#include "ctl/words.h"
#include "gpusched/reasons.h"
#include "gpusched/units.h"

namespace gpusched::ctl {
namespace {

int Fail(const Terminal& terminal, const Status& status, const admin::FieldErrors& fields = {}) {
  if (terminal.json) {
    std::printf("%s\n", Json(status, fields).c_str());
    return 1;
  }
  std::fprintf(stderr, "gpuschedctl: %s\n", FailureWords(status, fields).c_str());
  return 1;
}

void Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

std::string Count(std::uint64_t number) { return std::to_string(number); }

// The policy's answer says which fields of a share count.
std::vector<std::string> Honoured(Terminal& terminal) {
  const Result<admin::Policy> policy = terminal.client.GetPolicy();
  return policy ? policy->honoured : std::vector<std::string>{};
}

std::string State(const admin::Session& session) {
  if (session.paused) return "paused";
  if (session.at_cap) return LimitWords(session);
  if (session.jobs_running > 0) return "running";
  if (session.runnable || session.jobs_waiting > 0) return "waiting";
  return "no work";
}

std::string PolicyText(const admin::Policy& policy) {
  std::string text = policy.kind + " " + ParameterWords(policy.parameters) + "\n";
  text += "  generation  " + Count(policy.generation) + ", by " + policy.source + ", since " +
          WallClock(policy.since_unix_ns) + "\n";
  if (policy.expires_unix_ns != 0) {
    text +=
        "  until       " + WallClock(policy.expires_unix_ns) + ", then what was in force before\n";
  }
  if (!policy.note.empty()) text += "  note        " + policy.note + "\n";
  if (policy.file_differs) text += "  file        differs: `gpuschedctl reload` applies it\n";
  std::string honoured;
  for (const std::string& field : policy.honoured) {
    honoured += (honoured.empty() ? "" : ", ") + field;
  }
  text += "  honours     " + honoured + "\n";
  if (!policy.etag.empty()) text += "  etag        " + policy.etag + "\n";
  return text;
}

int ShowPolicy(Terminal& terminal, const Result<admin::Policy>& policy,
               const admin::FieldErrors& fields = {}) {
  if (!policy) return Fail(terminal, policy.status(), fields);
  Print(terminal.json ? Json(*policy) + "\n" : PolicyText(*policy));
  return 0;
}

int ShowTouched(Terminal& terminal, const Result<std::vector<admin::Session>>& touched,
                const char* done) {
  if (!touched) return Fail(terminal, touched.status());
  if (terminal.json) {
    Print(Json(*touched) + "\n");
    return 0;
  }
  for (const admin::Session& one : *touched) {
    Print(std::string(done) + " session " + Count(one.id) + " '" + one.name + "'\n");
  }
  return 0;
}

std::string TopText(const admin::Snapshot& before, const admin::Snapshot& after) {
  std::string text = after.policy.kind + " " + ParameterWords(after.policy.parameters) +
                     " (generation " + Count(after.policy.generation) + ", by " +
                     after.policy.source + ")\n";
  for (const admin::Device& device : after.devices) {
    double busy = 0;
    for (const admin::Device& earlier : before.devices) {
      if (earlier.uuid != device.uuid || after.time <= before.time) continue;
      busy = static_cast<double>((device.charged - earlier.charged).count()) /
             static_cast<double>((after.time - before.time).count());
    }
    text += "device " + std::to_string(device.index) + " " + device.uuid + ": " + Percent(busy) +
            " used, " + FormatBytes(device.memory_used_bytes) + " of " +
            FormatBytes(device.memory_bytes) + (device.lost ? ", LOST" : "") + "\n";
  }
  Table table({">ID", "NAME", "DEVICE", "SHARE", ">DECLARED", ">ASKED", ">GOT", ">LATE", ">WAITING",
               "WHY"});
  for (const Period& period : Compare(before, after)) {
    const admin::Session& session = period.session;
    table.Add({Count(session.id), session.name, session.device,
               ShareWords(session.share, after.policy.honoured),
               session.shares_promised ? Percent(period.declared) : "-",
               session.shares_promised ? Percent(period.asked) : "-", Percent(period.got),
               Count(period.late) + "/" + Count(period.finished), Count(session.jobs_waiting),
               Why(period, after.policy)});
  }
  return text + "\n" + table.Text();
}

}  // namespace

int Devices(Terminal& terminal) {
  const Result<std::vector<admin::Device>> devices = terminal.client.Devices();
  if (!devices) return Fail(terminal, devices.status());
  if (terminal.json) {
    Print(Json(*devices) + "\n");
    return 0;
  }
  Table table({">INDEX", "UUID", "NAME", "BACKEND", ">MEMORY", ">USED", ">SESSIONS", ">CHARGED",
               ">COMMANDS", ">SLICES", ">PREEMPTIONS", "BOUND", "STATE"});
  for (const admin::Device& device : *devices) {
    table.Add({std::to_string(device.index), device.uuid, device.name, device.backend,
               FormatBytes(device.memory_bytes), FormatBytes(device.memory_used_bytes),
               Count(device.sessions), FormatDuration(device.charged), Count(device.commands),
               Count(device.slices), Count(device.preemptions),
               FormatDuration(device.preemption_bound), device.lost ? "lost" : "ready"});
  }
  Print(table.Text());
  return 0;
}

int Sessions(Terminal& terminal) {
  const Result<std::vector<admin::Session>> sessions = terminal.client.Sessions();
  if (!sessions) return Fail(terminal, sessions.status());
  if (terminal.json) {
    Print(Json(*sessions) + "\n");
    return 0;
  }
  const std::vector<std::string> honoured = Honoured(terminal);
  Table table({">ID", "NAME", "DEVICE", "SHARE", "STATE", ">ASKED", ">GOT", ">LAG", ">WAITING",
               ">DONE", ">LATE", ">FAILED", ">MEMORY", ">LONGEST WHOLE", "PEER"});
  for (const admin::Session& one : *sessions) {
    table.Add({Count(one.id), one.name, one.device, ShareWords(one.share, honoured), State(one),
               one.shares_promised ? FormatDuration(one.asked) : "-", FormatDuration(one.charged),
               FormatDuration(one.lag), Count(one.jobs_waiting), Count(one.jobs_done),
               Count(one.jobs_late), Count(one.jobs_failed), FormatBytes(one.memory_bytes),
               FormatDuration(one.longest_uncuttable), one.peer});
  }
  Print(table.Text());
  return 0;
}

int Modules(Terminal& terminal) {
  const Result<std::vector<admin::Module>> modules = terminal.client.Modules();
  if (!modules) return Fail(terminal, modules.status());
  if (terminal.json) {
    Print(Json(*modules) + "\n");
    return 0;
  }
  Table table({">SESSION", "NAME", ">MODULE", "KERNEL", "CAN BE CUT", "PARAMETERS"});
  for (const admin::Module& module : *modules) {
    for (const admin::Module::Kernel& kernel : module.kernels) {
      std::string parameters;
      for (const std::string& parameter : kernel.parameters) {
        parameters += (parameters.empty() ? "" : ", ") + parameter;
      }
      table.Add({Count(module.session), module.session_name, Count(module.module), kernel.name,
                 kernel.cuttable ? "yes" : "no: " + kernel.whole_reason, parameters});
    }
  }
  Print(table.Text());
  return 0;
}

int PolicyGet(Terminal& terminal) { return ShowPolicy(terminal, terminal.client.GetPolicy()); }

int PolicyKinds(Terminal& terminal) {
  const Result<std::vector<admin::PolicyKind>> kinds = terminal.client.PolicyKinds();
  if (!kinds) return Fail(terminal, kinds.status());
  if (terminal.json) {
    Print(Json(*kinds) + "\n");
    return 0;
  }
  for (const admin::PolicyKind& kind : *kinds) {
    std::string honoured;
    for (const std::string& field : kind.honoured) {
      honoured += (honoured.empty() ? "" : ", ") + field;
    }
    Print(kind.kind + "\n  " + kind.promise + "\n  honours " + honoured + "\n");
    Table table({"    PARAMETER", "DEFAULT", "RANGE", "MEANING"});
    for (const admin::PolicyKind::Parameter& parameter : kind.parameters) {
      table.Add(
          {"    " + parameter.name, parameter.default_value, parameter.range, parameter.meaning});
    }
    if (!table.empty()) Print(table.Text());
  }
  return 0;
}

int PolicyHistory(Terminal& terminal) {
  const Result<std::vector<admin::Policy>> history = terminal.client.PolicyHistory();
  if (!history) return Fail(terminal, history.status());
  if (terminal.json) {
    Print(Json(*history) + "\n");
    return 0;
  }
  Table table({">GENERATION", "SINCE", "BY", "KIND", "PARAMETERS", "NOTE"});
  for (const admin::Policy& policy : *history) {
    table.Add({Count(policy.generation), WallClock(policy.since_unix_ns), policy.source,
               policy.kind, ParameterWords(policy.parameters), policy.note});
  }
  Print(table.Text());
  return 0;
}

int PolicyValidate(Terminal& terminal, const std::string& kind,
                   const admin::Parameters& parameters) {
  admin::FieldErrors fields;
  const Result<admin::Policy> policy = terminal.client.ValidatePolicy(kind, parameters, &fields);
  if (!policy) return Fail(terminal, policy.status(), fields);
  Print(terminal.json ? Json(*policy) + "\n"
                      : "valid: " + policy->kind + " " + ParameterWords(policy->parameters) + "\n");
  return 0;
}

int PolicySet(Terminal& terminal, const admin::AdminClient::Update& update) {
  admin::FieldErrors fields;
  const Result<admin::Policy> policy = terminal.client.SetPolicy(update, &fields);
  return ShowPolicy(terminal, policy, fields);
}

int PolicyRollBack(Terminal& terminal, std::uint64_t generation) {
  return ShowPolicy(terminal, terminal.client.RollBackPolicy(generation));
}

int Reload(Terminal& terminal) {
  admin::FieldErrors fields;
  const Result<admin::Reloaded> reloaded = terminal.client.Reload(&fields);
  if (!reloaded) return Fail(terminal, reloaded.status(), fields);
  if (terminal.json) {
    Print(Json(*reloaded) + "\n");
    return 0;
  }
  Print(reloaded->changed ? "applied\n" : "nothing has changed\n");
  for (const std::string& key : reloaded->needs_restart) Print("needs a restart: " + key + "\n");
  return 0;
}

int Pause(Terminal& terminal, const std::string& which) {
  return ShowTouched(terminal, terminal.client.Pause(which), "paused");
}
int Resume(Terminal& terminal, const std::string& which) {
  return ShowTouched(terminal, terminal.client.Resume(which), "resumed");
}
int Kill(Terminal& terminal, const std::string& which) {
  return ShowTouched(terminal, terminal.client.Kill(which), "killed");
}

int Top(Terminal& terminal, admin::Duration period, bool once) {
  Result<std::unique_ptr<admin::Feed<admin::Snapshot>>> feed = terminal.client.Watch(period);
  if (!feed) return Fail(terminal, feed.status());
  const bool redraw = !once && !terminal.json && isatty(STDOUT_FILENO) != 0;
  Result<admin::Snapshot> before = (*feed)->Next();
  while (before) {
    Result<admin::Snapshot> after = (*feed)->Next();
    if (!after) return Fail(terminal, after.status());
    if (terminal.json) {
      Print(Json(*after) + "\n");
    } else {
      // Home, then clear to the end: no flicker.
      Print((redraw ? "\033[H\033[J" : "") + TopText(*before, *after) +
            (redraw || once ? "" : "\n"));
    }
    if (once) return 0;
    before = std::move(after);
  }
  return Fail(terminal, before.status());
}

int Slices(Terminal& terminal, std::uint64_t count) {
  Result<std::unique_ptr<admin::Feed<admin::SliceBatch>>> feed = terminal.client.WatchSlices();
  if (!feed) return Fail(terminal, feed.status());
  std::uint64_t printed = 0;
  for (;;) {
    const Result<admin::SliceBatch> batch = (*feed)->Next();
    if (!batch) return Fail(terminal, batch.status());
    if (batch->dropped > 0 && !terminal.json) {
      Print("(" + Count(batch->dropped) + " slices left out: this terminal is too slow)\n");
    }
    for (const admin::Slice& slice : batch->slices) {
      if (terminal.json) {
        Print(Json(slice) + "\n");
      } else {
        char line[256];
        std::snprintf(line, sizeof line,
                      "%14.6f s  device %d  session %-6llu generation %-4llu granted %-10s charged "
                      "%-10s commands %-5u %s%s\n",
                      static_cast<double>(slice.started.count()) / 1e9, slice.device,
                      static_cast<unsigned long long>(slice.session),
                      static_cast<unsigned long long>(slice.generation),
                      FormatDuration(slice.granted).c_str(), FormatDuration(slice.charged).c_str(),
                      slice.commands, std::string(Words(slice.end)).c_str(),
                      slice.rescue ? ", rescue" : "");
        Print(line);
      }
      if (++printed == count) return 0;
    }
  }
}

}  // namespace gpusched::ctl
