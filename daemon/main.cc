// gpuschedd: reads the command line, starts the daemon, and waits for signals.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "config.h"
#include "daemon.h"
#include "executor/clock.h"
#include "gpusched/reasons.h"
#include "rpc/version.h"
#include "telemetry/log.h"

namespace gpusched::daemon {
namespace {

// How long what runs on a device may take after everything was told to stop.
constexpr Duration kCloseTime = std::chrono::seconds(2);
constexpr timespec kLook{.tv_sec = 0, .tv_nsec = 20'000'000};
// Of an option or a configuration that is wrong wherever it is started.
constexpr int kUsage = 2;

// A session takes a descriptor or two; the default of 1,024 would be the limit of sessions.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// The main thread alone takes signals: blocked before any thread exists, so blocked in all of them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// False: a second signal, or the time is over.
bool AwaitIdle(const Daemon& daemon, const sigset_t& signals, Duration limit) {
  const Time end = After(executor::Now(), limit);
  while (!daemon.idle()) {
    if (executor::Now() >= end) return false;
    const int signal = sigtimedwait(&signals, nullptr, &kLook);
    if (signal == SIGTERM || signal == SIGINT) return false;
  }
  return true;
}

int Serve(std::unique_ptr<Daemon> daemon, const sigset_t& signals) {
  const std::string ready = "gpuschedd ready: " + daemon->Describe();
  std::printf("%s\n", ready.c_str());
  std::fflush(stdout);
  for (int signal = SIGHUP; signal == SIGHUP;) {
    signal = sigwaitinfo(&signals, nullptr);
    if (signal == SIGHUP) daemon->Reload("SIGHUP");
    if (signal < 0) signal = SIGHUP;  // interrupted
  }
  telemetry::Info("stopping: sessions may finish, for at most " +
                  std::to_string(daemon->drain_timeout() / std::chrono::milliseconds(1)) + " ms");
  daemon->Drain();
  const bool drained = AwaitIdle(*daemon, signals, daemon->drain_timeout());
  if (!drained) {
    daemon->Close();
    if (!AwaitIdle(*daemon, signals, kCloseTime)) {
      telemetry::Warning("stopped while a device was busy");
      std::_Exit(EXIT_FAILURE);  // the sockets it leaves are stale, and taken over
    }
  }
  daemon.reset();
  telemetry::Info(drained ? "stopped" : "stopped, with unfinished work cancelled");
  return EXIT_SUCCESS;
}

int ExitStatus(const Status& status) {
  const bool wrong =
      status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kNotFound;
  return wrong && status.reason() == reason::kBadConfiguration ? kUsage : EXIT_FAILURE;
}

int Main(int argc, char** argv) {
  CLI::App app("gpuschedd lets services share a GPU by measured time.");
  Daemon::Options options;
  Overrides& flags = options.overrides;
  bool keys = false;
  app.add_option("--config", options.config_path, "configuration file (YAML); flags override it");
  app.add_option("--device", flags.device, "auto, cuda, opencl or virtual");
  app.add_option("--devices", flags.devices, "how many devices to open, 1 to 8")
      ->check(CLI::Range(1, 8));
  app.add_option("--costs", flags.costs, "cost file of the virtual device");
  app.add_option("--endpoint", flags.endpoints, "where services connect; may be repeated");
  app.add_option("--admin", flags.admin, "where operators connect, unix:/path");
  app.add_option("--policy", flags.policy, "KIND[,parameter=value...]");
  app.add_option("--preemption-bound", flags.preemption_bound, "100us to 1s");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error");
  app.add_flag("--help-config", keys, "the table of configuration keys");
  app.set_version_flag("--version", "gpuschedd " + std::string(rpc::kVersion));
  app.footer(
      "Exit status: 0 when it was told to stop and stopped; 1 if it could not start or stop in "
      "order;\n2 for a wrong option or configuration.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? EXIT_SUCCESS : kUsage;
  }
  if (keys) {
    std::printf("%s", KeyTable().c_str());
    return EXIT_SUCCESS;
  }
  RaiseDescriptorLimit();
  const sigset_t signals = BlockSignals();
  Result<std::unique_ptr<Daemon>> daemon = Daemon::Start(options);
  if (!daemon.ok()) {
    std::fprintf(stderr, "gpuschedd: %s\n", daemon.status().ToString().c_str());
    return ExitStatus(daemon.status());
  }
  return Serve(*std::move(daemon), signals);
}

}  // namespace
}  // namespace gpusched::daemon

int main(int argc, char** argv) { return gpusched::daemon::Main(argc, argv); }
