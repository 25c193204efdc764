// A client to be killed: it gets to a given point, says so, and stays there.
//
// Usage: stubborn_client ENDPOINT running|waiting|writing|opening
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "gpusched/client.h"

namespace {

constexpr char kKernel[] = "kernel work time_per_block=1ms cuttable=no\n";

template <typename T>
T Take(gpusched::Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::exit(1);
}

[[noreturn]] void Stay() {
  std::puts("there");
  std::fflush(stdout);
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  using gpusched::Job;
  if (argc != 3) return 2;
  const std::string point = argv[2];
  const auto client = Take(gpusched::Client::Connect({.endpoint = argv[1]}));
  auto session = Take(client.OpenSession({.name = "stubborn", .memory = 64 << 20}));
  if (point == "opening") Stay();
  const auto module = Take(session.LoadModule({.virtual_text = kKernel}));
  const Job job = Job().Launch(module.kernel("work"), {50}, {1});
  auto running = Take(session.Submit(job));
  if (point == "running") Stay();
  auto waiting = Take(session.Submit(job));
  if (point == "waiting") Stay();
  // In the middle of a write: bytes go out as long as we live.
  const auto buffer = Take(session.Allocate(16 << 20));
  const std::vector<char> bytes(16 << 20);
  std::thread([] { Stay(); }).detach();
  for (;;) {
    auto write = Take(session.Submit(Job().Write(buffer, bytes)));
    (void)write.Wait();
  }
}
