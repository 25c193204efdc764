// Runs a kernel written with every word of kernel.h and compares it with a plain loop.
#include <gpusched/client.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "kernels/portable.h"

namespace {

using namespace gpusched;

constexpr std::uint32_t kGrid[3] = {3, 2, 2}, kBlock[3] = {8, 4, 2};
constexpr std::size_t kThreads = 3 * 2 * 2 * 8 * 4 * 2;
using Counters = std::array<std::int32_t, 7>;

std::size_t Index(const std::uint32_t (&group)[3], const std::uint32_t (&local)[3]) {
  std::size_t index = 0;
  for (int d = 2; d >= 0; --d) {
    index = index * kGrid[d] * kBlock[d] + group[d] * kBlock[d] + local[d];
  }
  return index;
}

template <typename Visit>
void ForEach(const std::uint32_t (&sizes)[3], Visit visit) {
  for (std::uint32_t z = 0; z < sizes[2]; ++z) {
    for (std::uint32_t y = 0; y < sizes[1]; ++y) {
      for (std::uint32_t x = 0; x < sizes[0]; ++x) visit({x, y, z});
    }
  }
}

// Small whole numbers and halves: exact in any order.
std::vector<float> Expected(const std::vector<float>& in) {
  std::vector<float> out(kThreads);
  ForEach(kGrid, [&](const std::uint32_t(&group)[3]) {
    float sum = 0;
    std::uint32_t place = 0;
    ForEach(kBlock, [&](const std::uint32_t(&local)[3]) {
      sum += in[Index(group, local)] * (place++ % 2 == 0 ? 2.0f : 0.5f);
    });
    ForEach(kBlock, [&](const std::uint32_t(&local)[3]) {
      out[Index(group, local)] = sum + static_cast<float>(group[0] + kGrid[1] + group[2]);
    });
  });
  return out;
}

Status Run(bool& right) {
  const auto client = Client::Connect();
  if (!client.ok()) return client.status();
  auto session = client->OpenSession({.name = "portable_kernel"});
  if (!session.ok()) return session.status();
  const auto module =
      session->LoadModule({.source = kernels::kPortable, .cuda_source = kernels::kPortable});
  if (!module.ok()) return module.status();
  std::vector<float> in(kThreads), out(kThreads);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * 7 % 32);
  Counters counters{0, 0, 100, -100, 0, 3, 4};
  const auto from = session->Allocate(kThreads * sizeof(float));
  const auto to = session->Allocate(kThreads * sizeof(float));
  const auto counted = session->Allocate(sizeof counters);
  if (!from.ok()) return from.status();
  if (!to.ok()) return to.status();
  if (!counted.ok()) return counted.status();
  auto job =
      session->Submit(Job()
                          .Write(*from, in)
                          .Write(*counted, counters)
                          .Launch(module->kernel("all_words"), Dim3{kGrid[0], kGrid[1], kGrid[2]},
                                  Dim3{kBlock[0], kBlock[1], kBlock[2]}, *from, *to, *counted)
                          .Read(*to, out)
                          .Read(*counted, counters));
  if (!job.ok()) return job.status();
  if (const auto report = job->Wait(); !report.ok()) return report.status();
  const std::int32_t all = kThreads;
  right = out == Expected(in) && counters == Counters{all, -all, 0, all - 1, 7, 8, 4};
  return Status::Ok();
}

}  // namespace

int main(int argc, char**) {
  if (argc > 1) return std::fprintf(stderr, "usage: portable_kernel, without arguments\n"), 2;
  bool right = false;
  const Status status = Run(right);
  if (!status.ok()) std::fprintf(stderr, "portable_kernel: %s\n", status.ToString().c_str());
  std::printf("every word of kernel.h: %s\n", right ? "all right" : "WRONG");
  return right ? 0 : 1;
}
