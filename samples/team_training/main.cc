// A team that trains on one device: three sessions with shares and memory as each asked for.
#include <gpusched/client.h>
#include <gpusched/units.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/command_line.h"
#include "common/computing_session.h"
#include "common/loads.h"
#include "common/service_report.h"
#include "trainer.h"

namespace team {
namespace {

using namespace std::chrono_literals;
using namespace gpusched::literals;

struct Member {
  std::string name;
  int weight = 100;
  std::uint64_t memory = 0;
};

struct Options {
  samples::CommonOptions common;
  // The paper has the deadline.
  std::vector<Member> members = {
      {"paper", 70, 48_MiB}, {"thesis", 20, 8_MiB}, {"course", 10, 4_MiB}};
  gpusched::Duration step_alone = 20ms, launch = 1ms;
};

constexpr std::size_t kOutstandingSteps = 3;

// NAME=WEIGHT:MEMORY, several with commas between them.
bool ParseMembers(const std::string& text, std::vector<Member>& members) {
  members.clear();
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, end - start);
    const std::size_t equals = part.find('='), colon = part.find(':');
    if (equals == std::string::npos || colon == std::string::npos || equals > colon) return false;
    const auto memory = gpusched::ParseBytes(part.substr(colon + 1));
    const auto weight = gpusched::ParseBytes(part.substr(equals + 1, colon - equals - 1));
    if (equals == 0 || !memory || !weight || *weight < 1 || *weight > 10'000) return false;
    members.push_back({part.substr(0, equals), static_cast<int>(*weight), *memory});
    start = end + 1;
  }
  return true;
}

struct Place {
  gpusched::Session session;
  std::unique_ptr<Trainer> trainer;
  samples::ServiceReport report;
};

gpusched::Status Prepare(const Options& options, std::deque<Place>& places) {
  for (const Member& member : options.members) {
    samples::ServiceReport report{.service = member.name,
                                  .jobs_are = "steps",
                                  .share = {.weight = member.weight},
                                  .outcome = {}};
    auto session = samples::OpenComputingSession(
        options.common, {.name = member.name, .share = report.share, .memory = member.memory});
    if (!session.ok()) return session.status();
    Place& place = places.emplace_back(Place{*std::move(session), nullptr, std::move(report)});
    auto trainer =
        Trainer::Open(place.session, static_cast<std::uint32_t>(places.size()),
                      samples::SizeOf(options.common, options.step_alone, options.launch));
    if (!trainer.ok()) return trainer.status();
    place.trainer = *std::move(trainer);
    const auto right = place.trainer->NextStepIsRight();
    if (!right.ok()) return right.status();
    ++place.report.checked;
    if (!*right) ++place.report.wrong;
  }
  return gpusched::Status::Ok();
}

void Train(const Options& options, Place& place) {
  Trainer& trainer = *place.trainer;
  samples::ServiceReport& report = place.report;
  report.outcome =
      samples::RunBackToBack(options.common.length(), kOutstandingSteps,
                             [&](std::size_t, const gpusched::SubmitOptions& submit_options) {
                               return trainer.Submit(submit_options);
                             });
  report.figures.emplace_back("rows_of_data", trainer.rows());
  report.figures.emplace_back("rows_a_step", trainer.batch());
  report.figures.emplace_back("memory_bytes", trainer.memory_used());
  report.figures.emplace_back("first_loss", trainer.first_loss());
  report.figures.emplace_back("last_loss", trainer.last_loss());
  // The byte too many is asked for while the others train.
  const bool refused = trainer.RefusesOneByteTooMany();
  report.figures.emplace_back("byte_too_many_refused", refused ? 1 : 0);
  if (!refused || !(trainer.last_loss() < trainer.first_loss())) ++report.wrong;
  const auto right = trainer.NextStepIsRight();
  ++report.checked;
  if (!right.ok() || !*right) ++report.wrong;
}

gpusched::Result<bool> Run(const Options& options) {
  std::deque<Place> places;
  if (gpusched::Status status = Prepare(options, places); !status.ok()) return status;
  std::vector<std::thread> threads;
  for (Place& place : places) threads.emplace_back([&] { Train(options, place); });
  for (std::thread& thread : threads) thread.join();
  std::vector<samples::ServiceReport> reports;
  for (Place& place : places) reports.push_back(place.report);
  samples::Print("team_training", places.front().session.device(), reports, options.common.json);
  return std::none_of(reports.begin(), reports.end(),
                      [](const samples::ServiceReport& report) { return report.failed(); });
}

int Main(int argc, char** argv) {
  Options options;
  samples::CommandLine command_line("team_training",
                                    "trains a classifier for each member of a team, side by side",
                                    options.common);
  command_line.Add(
      "--team", "NAME=WEIGHT:MEMORY,... (paper=70:48MiB,thesis=20:8MiB,course=10:4MiB)",
      "NAME=WEIGHT:MEMORY, several with commas; a weight lies between 1 and 10000",
      [&options](const std::string& text) { return ParseMembers(text, options.members); });
  command_line.Add("--step", "device time of a step, alone (20ms)", options.step_alone);
  command_line.Add("--launch", "longest launch, about (1ms)", options.launch);
  if (const auto status = command_line.Parse(argc, argv)) return *status;
  const gpusched::Result<bool> right = Run(options);
  if (right.ok()) return *right ? 0 : 1;
  std::fprintf(stderr, "team_training: %s\n", right.status().ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace team

int main(int argc, char** argv) { return team::Main(argc, argv); }
