// Drives the policy by hand, without a daemon: facts go in as notices, decisions come out.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "shortest_job_first.h"

using namespace std::chrono_literals;

namespace {

struct Client {
  std::string_view name;
  gpusched::Duration job, left{0};
  int jobs = 1, done = 0;
  gpusched::SessionView view{};
};

}  // namespace

int main(int argc, char**) {
  if (argc > 1) {
    std::fprintf(stderr, "usage: custom_policy, without arguments\n");
    return 2;
  }
  std::vector<gpusched::FieldError> errors;
  const auto parameters = gpusched::Parameters::Parse(sample::kShortestJobFirst.parameters,
                                                      {{"patience", "20ms"}}, errors);
  const auto policy = sample::kShortestJobFirst.make(parameters, errors);
  if (!errors.empty()) return EXIT_FAILURE;

  Client clients[] = {{"training", 60ms}, {"report", 9ms}, {"thumbnails", 3ms, 0ms, 6}};
  std::uint32_t slot = 0;
  for (Client& client : clients) {
    client.left = client.job;
    client.view.id = {slot, slot + 1u};
    client.view.waiting_since = gpusched::Time{};
    client.view.estimated_work = client.left;
    policy->SessionAdded(client.view);
    policy->SessionRunnable(client.view);
    ++slot;
  }

  gpusched::DecisionContext context;
  context.longest_slice = 1s;
  for (;;) {
    const gpusched::Decision decision = policy->Decide(context);
    if (decision.kind != gpusched::Decision::Kind::kRun) break;
    Client& client = clients[decision.session.slot];
    const gpusched::Duration ran = std::min(decision.length, client.left);
    std::printf("%5.1f ms  %-10.*s runs %.1f ms\n", context.now.time_since_epoch() / 1us / 1e3,
                static_cast<int>(client.name.size()), client.name.data(), ran / 1us / 1e3);
    context.now += ran;
    client.left -= ran;
    if (client.left == 0ms && ++client.done < client.jobs) client.left = client.job;
    if (client.left == 0ms) policy->SessionIdle(client.view.id);
    client.view.waiting_since = client.left > 0ms ? context.now : gpusched::kNever;
    client.view.estimated_work = client.left;
    policy->Charged(client.view, ran);
  }
  for (const Client& client : clients) {
    if (client.done != client.jobs) return EXIT_FAILURE;
  }
  std::printf("all done after %.1f ms\n", context.now.time_since_epoch() / 1us / 1e3);
  return EXIT_SUCCESS;
}
