// The first program: one job that copies in, launches and copies out, with its result checked.
#include <gpusched/client.h>
#include <gpusched/units.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::size_t kElements = 1 << 20;
constexpr std::uint32_t kBlock = 256;

// y = a x + y, for every element.
constexpr char kSaxpy[] = R"(
__kernel void saxpy(float a, __global const float* x, __global float* y, uint n) {
  size_t i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}
)";

constexpr char kCuda[] = R"(
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
)";

// The virtual device computes nothing: it keeps bytes and takes time, here 4,096 blocks of 0.5 us.
constexpr char kVirtual[] = "kernel saxpy time_per_block=500ns parameters=f32,buffer,buffer,u32\n";

constexpr char kUsage[] =
    "hello_job [ENDPOINT [DEVICE]]: one job, there and back, with its result checked\n"
    "  ENDPOINT  unix:/path or host:port; default: GPUSCHED_ENDPOINT\n"
    "  DEVICE    uuid, index or auto (auto)\n";

struct Failed {
  std::string why;
};

// The value, or the end of the program with the reason.
template <typename T>
T Take(gpusched::Result<T> result, const char* what) {
  if (!result.ok()) throw Failed{std::string(what) + ": " + result.status().ToString()};
  return *std::move(result);
}

void Show(const gpusched::JobReport& report) {
  const auto text = [](gpusched::Duration d) { return gpusched::FormatDuration(d); };
  std::printf("  in client %s, queued %s, run %s, returned %s: %s in all; charged %s\n",
              text(report.in_client).c_str(), text(report.queued).c_str(), text(report.run).c_str(),
              text(report.returned).c_str(), text(report.total).c_str(),
              text(report.charged).c_str());
}

// How many elements differ from what a plain loop computes.
std::size_t Wrong(bool computes, float a, const std::vector<float>& x, const std::vector<float>& y,
                  const std::vector<float>& result) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const float expected = computes ? a * x[i] + y[i] : y[i];
    // A device may fuse the multiply and the add: half a unit in the last place.
    if (std::abs(result[i] - expected) > 1e-6f * std::abs(expected)) ++wrong;
  }
  return wrong;
}

int Run(const std::string& endpoint, const std::string& device) {
  using gpusched::Job;
  const auto client = Take(gpusched::Client::Connect({.endpoint = endpoint}), "connect");
  auto session = Take(client.OpenSession({.name = "hello_job", .device = device}), "open session");
  const gpusched::DeviceInfo& info = session.device();
  std::printf("session %llu on device %d: %s (%s)\n", static_cast<unsigned long long>(session.id()),
              info.index, info.name.c_str(), info.backend.c_str());

  // The device picks the image that suits it.
  const auto module =
      Take(session.LoadModule({.source = kSaxpy, .cuda_source = kCuda, .virtual_text = kVirtual}),
           "load module");
  const bool computes = info.backend != "virtual";

  const float a = 2.5f;
  std::vector<float> x(kElements), y(kElements), result(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    x[i] = static_cast<float>(i % 1'000) / 8;
    y[i] = static_cast<float>(i % 77);
  }
  const auto device_x = Take(session.Allocate(kElements * sizeof(float)), "allocate");
  const auto device_y = Take(session.Allocate(kElements * sizeof(float)), "allocate");
  auto job = Take(session.Submit(Job()
                                     .Write(device_x, x)
                                     .Write(device_y, y)
                                     .Launch(module.kernel("saxpy"), {kElements / kBlock}, {kBlock},
                                             a, device_x, device_y, std::uint32_t{kElements})
                                     .Read(device_y, result)),
                  "submit");
  const auto report = Take(job.Wait(), "wait");

  const std::size_t wrong = Wrong(computes, a, x, y, result);
  if (computes) {
    std::printf("saxpy of %zu elements: %s\n", kElements, wrong == 0 ? "all right" : "WRONG");
  } else {
    std::printf(
        "%zu bytes there and back: %s (the virtual device takes time and computes nothing)\n",
        kElements * sizeof(float), wrong == 0 ? "all equal" : "DIFFERENT");
  }
  Show(report);
  if (wrong > 0) std::printf("  %zu elements differ\n", wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool help = argc > 1 && std::string_view(argv[1]) == "--help";
  if (help || argc > 3 || (argc > 1 && argv[1][0] == '-')) {
    std::fputs(kUsage, help ? stdout : stderr);
    return help ? 0 : 2;
  }
  try {
    return Run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "auto");
  } catch (const Failed& failed) {
    std::fprintf(stderr, "hello_job: %s\n", failed.why.c_str());
    return 1;
  }
}
