// Shares on a GPU, through the daemon: two endless sessions of weights 70 and 30, second by second.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ctl/admin_client.h"
#include "figure.h"
#include "gpusched/client.h"
#include "support/daemon_process.h"
#include "support/endless.h"

namespace gpusched::gpu {
namespace {

constexpr std::uint32_t kBlocks = 2'000, kThreads = 64;

// Keeps two launches outstanding.
struct Worker {
  Session session;
  Module module;
  Buffer buffer;
  std::unique_ptr<bench::Endless> load;
};

[[noreturn]] void Fail(const Status& status) {
  std::fprintf(stderr, "shares: %s\n", status.ToString().c_str());
  std::exit(1);
}
template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) Fail(result.status());
  return *std::move(result);
}

std::unique_ptr<Worker> Open(const Client& client, std::int32_t weight, const std::string& ptx,
                             std::uint32_t rounds) {
  Session session = Must(client.OpenSession(
      {.name = "weight-" + std::to_string(weight), .share = {.weight = weight}}));
  Module module = Must(session.LoadModule({.ptx = ptx}));
  Buffer buffer = Must(session.Allocate(std::uint64_t{kBlocks} * kThreads * 4));
  auto worker = std::make_unique<Worker>(
      Worker{std::move(session), std::move(module), std::move(buffer), nullptr});
  Worker& at = *worker;
  worker->load = std::make_unique<bench::Endless>(2, [&at, rounds] {
    return at.session.Submit(
        Job().Launch(at.module.kernel("spin"), Dim3{kBlocks}, Dim3{kThreads}, at.buffer, rounds));
  });
  return worker;
}

double ChargedMs(const std::vector<admin::Session>& sessions, const Worker& worker) {
  for (const admin::Session& session : sessions) {
    if (session.id == worker.session.id()) {
      return static_cast<double>(session.charged.count()) / 1e6;
    }
  }
  return 0;
}

int Main(const std::string& daemon_binary, const std::string& ptx, std::uint32_t rounds,
         int seconds) {
  test::DaemonOptions options;
  options.binary = daemon_binary;
  options.flags = {"--device=cuda", "--policy=weighted_share"};
  const auto daemon = Must(test::DaemonProcess::Start(std::move(options)));
  admin::AdminClient admin = Must(admin::AdminClient::Connect(daemon->admin_endpoint()));
  const Client client = Must(Client::Connect({.endpoint = daemon->endpoint()}));
  const auto large = Open(client, 70, ptx, rounds), small = Open(client, 30, ptx, rounds);
  double worst = 0;
  auto next = bench::SteadyTime::clock::now() + std::chrono::seconds(1);
  std::pair<double, double> before{0, 0};
  for (int second = 0; second <= seconds; ++second, next += std::chrono::seconds(1)) {
    std::this_thread::sleep_until(next);
    const auto sessions = Must(admin.Sessions());
    const std::pair<double, double> now{ChargedMs(sessions, *large), ChargedMs(sessions, *small)};
    const double got_large = now.first - before.first, got_small = now.second - before.second;
    before = now;
    if (second == 0) continue;  // it has the opening in it
    for (const auto* worker : {&large, &small}) {
      if (const Status status = (*worker)->load->status(); !status.ok()) Fail(status);
    }
    if (got_large + got_small <= 0) {
      std::fprintf(stderr, "shares: a second in which nobody was charged\n");
      return 1;
    }
    worst = std::max(worst, std::abs(100 * got_large / (got_large + got_small) - 70));
  }
  Print("shares of 70 and 30, worst second", worst, "points");
  return 0;
}

}  // namespace
}  // namespace gpusched::gpu

int main(int argc, char** argv) {
  const auto whole = [&](int place, int otherwise, int most) -> int {
    if (argc <= place) return otherwise;
    int value = 0;
    const char* const end = argv[place] + std::strlen(argv[place]);
    const auto [after, error] = std::from_chars(argv[place], end, value);
    return error == std::errc() && after == end && value >= 1 && value <= most ? value : 0;
  };
  const int rounds = whole(3, 200'000, 1'000'000'000), seconds = whole(4, 10, 3'600);
  if (argc < 3 || argc > 5 || rounds == 0 || seconds == 0) {
    std::fprintf(stderr,
                 "usage: gpusched-gpu-shares GPUSCHEDD KERNELS.PTX [ROUNDS [SECONDS]]: whole "
                 "numbers, ROUNDS at least 1, at most 1000000000, SECONDS at most 3600\n");
    return 2;
  }
  std::ifstream file(argv[2], std::ios::binary);
  const std::string ptx(std::istreambuf_iterator<char>(file), {});
  return gpusched::gpu::Main(argv[1], ptx, static_cast<std::uint32_t>(rounds), seconds);
}
