// gpuschedctl: the operator's tool. This file is its command line; commands.h is what it does.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ctl/commands.h"
#include "ctl/json.h"
#include "ctl/words.h"
#include "gpusched/units.h"
#include "gpusched/utf8.h"

namespace gpusched::ctl {
namespace {

constexpr int kUsage = 2;
// The daemon's bounds of a period and of a change that expires; what is longer is a typing error.
constexpr char kShortestPeriod[] = "50ms", kLongestPeriod[] = "1h";
constexpr char kShortestFor[] = "1ms", kLongestFor[] = "720h";
constexpr std::uint64_t kMostCount = 1'000'000'000'000;

struct Options {
  std::string endpoint;
  bool json = false;
  std::string period = "1s";
  bool once = false;
  std::uint64_t count = 0;
  std::vector<std::string> words;
  std::string for_time = "0";
  admin::AdminClient::Update update;
  std::uint64_t generation = 0;
  std::string session;
};

using Command = std::function<int(Terminal&)>;

CLI::Validator TimeBetween(const std::string& least, const std::string& most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        const auto time = ParseDuration(text);
        if (time && *time >= *ParseDuration(least) && *time <= *ParseDuration(most)) {
          return std::string();
        }
        return "'" + text + "' is no time from " + least + " to " + most +
               ": write 500ms, 1.5s, 10m or 2h";
      },
      "TIME");
}

// An unset variable of a script's must not stand for something else: any session, any etag.
CLI::Validator NotEmpty(const std::string& otherwise) {
  return CLI::Validator(
      [otherwise](std::string& text) { return text.empty() ? "it is empty: " + otherwise : ""; },
      "");
}

// The words as a policy, or the end of the program with what is wrong with them.
void TakePolicy(Options& options) {
  const Status status =
      ParsePolicy(options.words, &options.update.kind, &options.update.parameters);
  if (!status.ok()) throw CLI::ValidationError("policy", status.message());
}

void AddPolicyCommands(CLI::App& app, Options& options, Command& command) {
  CLI::App* policy = app.add_subcommand("policy", "The policy in force, and changes to it");
  policy->require_subcommand(1);
  policy->add_subcommand("get", "What is in force, since when, by whom")->callback([&] {
    command = PolicyGet;
  });
  policy->add_subcommand("kinds", "What there is, what it promises, its parameters")->callback([&] {
    command = PolicyKinds;
  });
  policy->add_subcommand("history", "What was in force, newest first")->callback([&] {
    command = PolicyHistory;
  });
  CLI::App* validate =
      policy->add_subcommand("validate", "Everything that is wrong with it; changes nothing");
  validate->add_option("policy", options.words, "KIND key=value..., or KIND,key=value,...")
      ->required();
  validate->callback([&] {
    TakePolicy(options);
    command = [&](Terminal& terminal) {
      return PolicyValidate(terminal, options.update.kind, options.update.parameters);
    };
  });
  CLI::App* set = policy->add_subcommand("set", "Puts it in force at once, while everything runs");
  set->add_option("policy", options.words,
                  "KIND key=value..., or KIND,key=value,...; without KIND, the one in force")
      ->required();
  set->add_option("--for", options.for_time, "Only for so long; then what was before comes back")
      ->check(TimeBetween(kShortestFor, kLongestFor));
  set->add_option("--etag", options.update.etag,
                  "Only if this is still in force (policy get shows it)")
      ->check(NotEmpty("policy get shows it; without --etag, whatever is in force is replaced"));
  set->callback([&] {
    TakePolicy(options);
    options.update.for_time = *ParseDuration(options.for_time);
    command = [&](Terminal& terminal) { return PolicySet(terminal, options.update); };
  });
  CLI::App* rollback = policy->add_subcommand("rollback", "Puts an earlier one in force again");
  rollback->add_option("generation", options.generation, "Which (policy history); the one before")
      ->check(CLI::Range(std::uint64_t{1}, kMostCount));
  rollback->callback([&] {
    command = [&](Terminal& terminal) { return PolicyRollBack(terminal, options.generation); };
  });
}

void AddSessionCommand(CLI::App& app, const char* name, const char* what, Options& options,
                       Command& command, int (*run)(Terminal&, const std::string&)) {
  CLI::App* added = app.add_subcommand(name, what);
  added->add_option("session", options.session, "Id or name (an ambiguous name lists the ids)")
      ->required()
      ->check(NotEmpty("gpuschedctl sessions shows ids and names"));
  added->callback([&options, &command, run] {
    command = [&options, run](Terminal& terminal) { return run(terminal, options.session); };
  });
}

void AddCommands(CLI::App& app, Options& options, Command& command) {
  app.add_option("--endpoint", options.endpoint,
                 "The daemon's admin socket; default: GPUSCHED_ADMIN, else "
                 "unix:/run/gpusched/admin.sock");
  app.add_flag("--json", options.json, "For scripts: JSON, times in nanoseconds");
  app.require_subcommand(1);
  app.fallthrough();

  app.add_subcommand("devices", "The devices and their totals")->callback([&] {
    command = Devices;
  });
  app.add_subcommand("sessions", "Who is there: shares, accounts, jobs, memory")->callback([&] {
    command = Sessions;
  });
  app.add_subcommand("modules", "The kernels loaded, and which cannot be cut")->callback([&] {
    command = Modules;
  });
  CLI::App* top = app.add_subcommand(
      "top", "Declared share, asked and got over the last period, why they differ, lateness");
  top->add_option("--period", options.period, "How often, and over how long")
      ->check(TimeBetween(kShortestPeriod, kLongestPeriod))
      ->capture_default_str();
  top->add_flag("--once", options.once, "One period, then end");
  top->callback([&] {
    command = [&](Terminal& terminal) {
      return Top(terminal, *ParseDuration(options.period), options.once);
    };
  });
  AddPolicyCommands(app, options, command);
  AddSessionCommand(app, "pause", "It gets no time until resumed", options, command, Pause);
  AddSessionCommand(app, "resume", "It gets time again", options, command, Resume);
  AddSessionCommand(app, "kill", "Ends the session; its jobs are cancelled", options, command,
                    Kill);
  app.add_subcommand("reload", "Reads the configuration file again, as SIGHUP does")->callback([&] {
    command = Reload;
  });
  CLI::App* slices = app.add_subcommand("slices", "Follows the ledger: a line for every slice");
  slices->add_option("--count", options.count, "End after so many")
      ->check(CLI::Range(std::uint64_t{1}, kMostCount));
  slices->callback(
      [&] { command = [&](Terminal& terminal) { return Slices(terminal, options.count); }; });
}

// The first word that is neither a command nor an option; "" if there is none.
std::string Unknown(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  return words.empty() ? "" : words.front();
}

int Main(int argc, char** argv) {
  Options options;
  Command command;
  CLI::App app("Watches and steers gpuschedd.", "gpuschedctl");
  AddCommands(app, options, command);
  app.footer(
      "Exit status: 0; 1 if the daemon refused it or was not there; 2 for a wrong command line.");
  for (int i = 1; i < argc; ++i) {
    // What the wire cannot carry would end as a lost connection.
    if (!FirstNotUtf8(argv[i])) continue;
    std::fprintf(stderr, "gpuschedctl: argument %d is not UTF-8\n", i);
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    // CLI11 misses the subcommand before it looks at what stands in its place.
    const std::string unknown = Unknown(app);
    if (unknown.empty()) return app.exit(error), kUsage;
    std::fprintf(stderr, "gpuschedctl: '%s' is no command\nRun with --help for more information.\n",
                 unknown.c_str());
    return kUsage;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  Result<admin::AdminClient> client = admin::AdminClient::Connect(options.endpoint);
  if (!client) {
    if (options.json) {
      std::printf("%s\n", Json(client.status(), {}).c_str());
    } else {
      std::fprintf(stderr, "gpuschedctl: %s\n", client.status().ToString().c_str());
    }
    return 1;
  }
  Terminal terminal{.client = *std::move(client), .json = options.json};
  const int status = command(terminal);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  std::fprintf(stderr, "gpuschedctl: the answer cannot be written to the output\n");
  return 1;
}

}  // namespace
}  // namespace gpusched::ctl

int main(int argc, char** argv) { return gpusched::ctl::Main(argc, argv); }
