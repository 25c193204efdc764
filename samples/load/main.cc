// A load: one session that asks the virtual device for time, at random instants or back to back,
// and says at the end how it was served.
#include <gpusched/client.h>
#include <gpusched/units.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "arguments.h"
#include "generator.h"

namespace load {
namespace {

std::string Percentile(const std::vector<gpusched::Duration>& sorted, double percent) {
  const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * sorted.size()));
  return gpusched::FormatDuration(sorted[std::max<std::size_t>(rank, 1) - 1]);
}

void Show(const Arguments& arguments, Outcome outcome) {
  std::sort(outcome.latencies.begin(), outcome.latencies.end());
  const double seconds = static_cast<double>(outcome.elapsed.count()) / 1e9;
  std::printf(
      "%s: %llu sent, %zu done, %llu refused, %llu failed or unfinished; %.1f done a second\n",
      arguments.session.name.c_str(), static_cast<unsigned long long>(outcome.sent),
      outcome.latencies.size(), static_cast<unsigned long long>(outcome.refused),
      static_cast<unsigned long long>(outcome.failed),
      static_cast<double>(outcome.latencies.size()) / seconds);
  if (!outcome.first_error.ok() && outcome.first_error.reason() != outcome.broke_off.reason()) {
    std::printf("  first error: %s\n", outcome.first_error.ToString().c_str());
  }
  if (outcome.latencies.empty()) return;
  std::printf("  latency p50 %s, p90 %s, p99 %s, longest %s; longest in queue %s\n",
              Percentile(outcome.latencies, 50).c_str(), Percentile(outcome.latencies, 90).c_str(),
              Percentile(outcome.latencies, 99).c_str(), Percentile(outcome.latencies, 100).c_str(),
              gpusched::FormatDuration(outcome.longest_queued).c_str());
  std::printf("  device time charged %s: %.1f %% of the time it ran\n",
              gpusched::FormatDuration(outcome.charged).c_str(),
              static_cast<double>(outcome.charged.count()) / 1e7 / seconds);
  const gpusched::Duration target = arguments.session.share.latency_target;
  if (target <= gpusched::Duration::zero()) return;
  const auto on_time =
      std::upper_bound(outcome.latencies.begin(), outcome.latencies.end(), target) -
      outcome.latencies.begin();
  std::printf("  on time (%s): %.2f %% of all that were sent\n",
              gpusched::FormatDuration(target).c_str(),
              100.0 * static_cast<double>(on_time) / static_cast<double>(outcome.sent));
}

gpusched::Status Run(Arguments arguments) {
  auto client = gpusched::Client::Connect({.endpoint = arguments.endpoint});
  if (!client.ok()) return client.status();
  auto session = client->OpenSession(arguments.session);
  if (!session.ok()) return session.status();
  if (session->device().backend != "virtual") {
    return gpusched::Status(gpusched::StatusCode::kFailedPrecondition, "NOT_VIRTUAL",
                            "device " + session->device().uuid +
                                " computes: this load asks the virtual device for time; start "
                                "gpuschedd with --device=virtual or name one with --device");
  }
  const std::string text = "kernel work time_per_block=" +
                           std::to_string(arguments.kernel_time.count() / arguments.blocks) +
                           "ns cuttable=" + (arguments.uncuttable ? "no" : "yes");
  auto module = session->LoadModule({.virtual_text = text});
  if (!module.ok()) return module.status();
  auto request = session->RegisterTemplate(
      gpusched::Job().Launch(module->kernel("work"), {arguments.blocks}, {1}));
  if (!request.ok()) return request.status();
  const std::uint32_t most = session->window().jobs;
  if (arguments.rate == 0 && arguments.outstanding > most) {
    std::fprintf(stderr,
                 "load: --outstanding %u is more than a session may have: %u are kept outstanding "
                 "(sessions.window_jobs)\n",
                 arguments.outstanding, most);
    arguments.outstanding = most;
  }
  Outcome outcome = arguments.rate > 0 ? RunOpenLoop(arguments, *session, *request)
                                       : RunClosedLoop(arguments, *session, *request);
  gpusched::Status broke_off = outcome.broke_off;
  Show(arguments, std::move(outcome));
  return broke_off;
}

int Main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--help") {
    std::fputs(Usage(), stdout);
    return 0;
  }
  const gpusched::Result<Arguments> arguments = Parse(argc, argv);
  if (!arguments.ok()) {
    std::fprintf(stderr, "load: %s\n%s", arguments.status().message().c_str(), Usage());
    return 2;
  }
  const gpusched::Status status = Run(*arguments);
  if (status.ok()) return 0;
  std::fprintf(stderr, "load: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace load

int main(int argc, char** argv) { return load::Main(argc, argv); }
