// A recommendation service, or with --update the update of its model, each a session of its own.
#include <gpusched/client.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <utility>
#include <vector>

#include "common/command_line.h"
#include "common/computing_session.h"
#include "common/loads.h"
#include "common/service_report.h"
#include "serving.h"
#include "update.h"

namespace recommendation {
namespace {

using namespace std::chrono_literals;

struct Options {
  samples::CommonOptions common;
  bool update = false;
  double rate = 75;
  gpusched::Duration target = 100ms, alone = 8ms, step_alone = 50ms, launch = 1ms;
};

constexpr std::size_t kItems = 20'000, kUsers = 2'000;
constexpr std::uint32_t kCatalogueSeed = 1, kLayersSeed = 2, kArrivalSeed = 3;
// Checking one takes about as long on the CPU as answering it did: some, and after the run.
constexpr std::size_t kChecked = 20;
constexpr std::size_t kOutstandingSteps = 2;
// A request is kept to its end, with what it found.
constexpr double kMostRate = 10'000, kMostRequests = 1e6;

gpusched::Status Serve(const Options& options, samples::ServiceReport& report,
                       gpusched::DeviceInfo& device) {
  report.service = "serving";
  report.jobs_are = "requests";
  report.target = options.target;
  report.share = {.weight = 70, .priority = 10, .latency_target = options.target};
  auto session = samples::OpenComputingSession(options.common,
                                               {.name = "recommendation", .share = report.share});
  if (!session.ok()) return session.status();
  device = session->device();
  const Catalogue catalogue = RandomCatalogue(kItems, kUsers, kCatalogueSeed);
  const Layers layers = RandomLayers(kLayersSeed);
  const auto serving = Serving::Open(
      *session, catalogue, layers, samples::SizeOf(options.common, options.alone, options.launch));
  if (!serving.ok()) return serving.status();

  const auto due = samples::RandomInstants(options.rate, options.common.length(), kArrivalSeed);
  std::vector<Request> requests(due.size());
  report.outcome = samples::RunWhenDue(
      due, [&](std::size_t index, const gpusched::SubmitOptions& submit_options) {
        requests[index].user = catalogue.user(index % catalogue.user_count());
        return (*serving)->Submit(requests[index], submit_options);
      });
  report.figures.emplace_back("candidates", (*serving)->candidates());
  const std::size_t every = std::max<std::size_t>(1, requests.size() / kChecked);
  for (std::size_t i = 0; i < requests.size(); i += every) {
    if (report.outcome.jobs[i].fate != samples::Fate::kDone) continue;
    ++report.checked;
    if (!(*serving)->IsRight(requests[i])) ++report.wrong;
  }
  return gpusched::Status::Ok();
}

gpusched::Status TakeSteps(const Options& options, samples::ServiceReport& report,
                           gpusched::DeviceInfo& device) {
  report.service = "update";
  report.jobs_are = "steps";
  report.share = {.weight = 30};
  auto session = samples::OpenComputingSession(options.common,
                                               {.name = "model update", .share = report.share});
  if (!session.ok()) return session.status();
  device = session->device();
  const Catalogue catalogue = RandomCatalogue(kItems, kUsers, kCatalogueSeed);
  const auto update = Update::Open(
      *session, catalogue, samples::SizeOf(options.common, options.step_alone, options.launch));
  if (!update.ok()) return update.status();
  // Open has compared a whole step, all its weights and its loss.
  report.checked = 1;

  report.outcome =
      samples::RunBackToBack(options.common.length(), kOutstandingSteps,
                             [&](std::size_t, const gpusched::SubmitOptions& submit_options) {
                               return (*update)->Submit(submit_options);
                             });
  report.figures.emplace_back("rows", (*update)->rows());
  report.figures.emplace_back("first_loss", (*update)->first_loss());
  report.figures.emplace_back("last_loss", (*update)->last_loss());
  if (!((*update)->last_loss() < (*update)->first_loss())) ++report.wrong;
  return gpusched::Status::Ok();
}

int Main(int argc, char** argv) {
  Options options;
  samples::CommandLine command_line(
      "recommendation", "answers requests for a user's best items, or updates the model",
      options.common);
  command_line.Add("--update", "take gradient steps instead of answering requests", options.update);
  command_line.Add("--rate", "requests a second, at random instants (75)", options.rate, kMostRate);
  command_line.Add("--target", "latency target of a request (100ms)", options.target);
  command_line.Add("--alone", "device time of a request, alone (8ms)", options.alone);
  command_line.Add("--step", "device time of a step of the update, alone (50ms)",
                   options.step_alone);
  command_line.Add("--launch", "longest launch, about (1ms)", options.launch);
  if (const auto status = command_line.Parse(argc, argv)) return *status;
  if (!options.update && options.rate * options.common.seconds > kMostRequests) {
    return command_line.Wrong("--rate times --seconds is more than a million requests");
  }
  samples::ServiceReport report;
  gpusched::DeviceInfo device;
  const gpusched::Status status =
      options.update ? TakeSteps(options, report, device) : Serve(options, report, device);
  if (!status.ok()) {
    std::fprintf(stderr, "recommendation: %s\n", status.ToString().c_str());
    return 1;
  }
  samples::Print("recommendation", device, {report}, options.common.json);
  return report.failed() ? 1 : 0;
}

}  // namespace
}  // namespace recommendation

int main(int argc, char** argv) { return recommendation::Main(argc, argv); }
