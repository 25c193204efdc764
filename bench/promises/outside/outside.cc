// The smallest useful program against an installed gpusched: a job with a copy in and a copy out.
#include <gpusched/client.h>

#include <iostream>
#include <vector>

int main(int, char** argv) {
  using namespace gpusched;
  auto client = Client::Connect({.endpoint = argv[1]});
  if (!client.ok()) return std::cerr << client.status().ToString() << "\n", 1;
  auto session = client->OpenSession({.name = "outside", .share = {.priority = 1}});
  if (!session.ok()) return std::cerr << session.status().ToString() << "\n", 1;
  auto module = session->LoadModule({.virtual_text = "kernel step time_per_block=10us"});
  if (!module.ok()) return std::cerr << module.status().ToString() << "\n", 1;
  auto buffer = session->Allocate(4 * sizeof(int));
  if (!buffer.ok()) return std::cerr << buffer.status().ToString() << "\n", 1;
  std::vector<int> in = {1, 2, 3, 4}, out(4);
  auto job = session->Submit(
      Job().Write(*buffer, in).Launch(module->kernel("step"), {8}, {64}).Read(*buffer, out));
  if (!job.ok()) return std::cerr << job.status().ToString() << "\n", 1;
  auto report = job->Wait();
  return report.ok() && report->outcome == Outcome::kDone && in == out ? 0 : 1;
}
