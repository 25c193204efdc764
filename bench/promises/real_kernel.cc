// Real kernels on OpenCL, through daemon and library, compared with plain loops on the CPU.
//
// All values are small whole numbers, so sums and products are exact in any order and every result
// must be equal to the last bit.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "promises/stage.h"
#include "promises/table.h"
#include "support/beside_update.h"

namespace gpusched::bench {
namespace {

constexpr const char* kSource = R"(
kernel void saxpy(float a, global const float* x, global float* y) {
  const size_t i = get_global_id(0);
  y[i] = a * x[i] + y[i];
}

// One partial sum a group.
kernel void sum(global const uint* in, global uint* out, local uint* part) {
  const size_t l = get_local_id(0);
  part[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (size_t step = get_local_size(0) / 2; step > 0; step /= 2) {
    if (l < step) part[l] += part[l + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) out[get_group_id(0)] = part[0];
}

// Five points; the border stays as it is.
kernel void stencil(global const int* in, global int* out) {
  const size_t x = get_global_id(0), y = get_global_id(1);
  const size_t w = get_global_size(0), h = get_global_size(1);
  const size_t i = y * w + x;
  out[i] = (x == 0 || y == 0 || x == w - 1 || y == h - 1)
               ? in[i]
               : 4 * in[i] - in[i - 1] - in[i + 1] - in[i - w] - in[i + w];
}
)";

constexpr std::uint32_t kBlock = 64;
constexpr std::uint32_t kElements = 64 * 1'024;
constexpr std::uint32_t kWidth = 192, kHeight = 128, kTile = 16;
constexpr int kSwaps = 100;
constexpr milliseconds kBetweenSwaps{100};

// A service that computes with values of its own and checks every result.
class Calculator {
 public:
  static Result<std::unique_ptr<Calculator>> Open(const std::string& endpoint, std::uint32_t seed) {
    const Result<Client> client = Client::Connect({.endpoint = endpoint});
    if (!client.ok()) return client.status();
    Result<Session> session = client->OpenSession({.name = "calculator"});
    if (!session.ok()) return session.status();
    Result<Module> module = session->LoadModule({.source = kSource});
    if (!module.ok()) return module.status();
    std::vector<Buffer> buffers;
    for (int i = 0; i < 2; ++i) {
      Result<Buffer> buffer = session->Allocate(kElements * sizeof(float));
      if (!buffer.ok()) return buffer.status();
      buffers.push_back(*std::move(buffer));
    }
    return std::unique_ptr<Calculator>(
        new Calculator(*std::move(session), *std::move(module), std::move(buffers), seed));
  }

  // Each of the three kernels once; counts results that differ.
  Status Round() {
    ++seed_;
    for (const auto& kernel : {&Calculator::Saxpy, &Calculator::Sum, &Calculator::Stencil}) {
      const Result<bool> equal = (this->*kernel)();
      if (!equal.ok()) return equal.status();
      ++computed_;
      if (!*equal) ++wrong_;
    }
    return Status::Ok();
  }

  const std::string& device_name() const { return session_.device().name; }
  std::uint64_t computed() const { return computed_; }
  std::uint64_t wrong() const { return wrong_; }

 private:
  Calculator(Session session, Module module, std::vector<Buffer> buffers, std::uint32_t seed)
      : session_(std::move(session)),
        module_(std::move(module)),
        in_(std::move(buffers[0])),
        out_(std::move(buffers[1])),
        seed_(seed) {}

  // Small whole numbers, others for each seed.
  template <typename T>
  std::vector<T> Values(std::size_t count, std::uint32_t salt) const {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<T>((i * 31 + seed_ * 17 + salt) % 101);
    }
    return values;
  }

  template <typename T>
  Result<bool> Compute(const Job& job, std::vector<T>& result, const std::vector<T>& expected) {
    Result<Submission> submission = session_.Submit(job);
    if (!submission.ok()) return submission.status();
    const Result<JobReport> report = submission->Wait();
    if (!report.ok()) return report.status();
    return report->outcome == Outcome::kDone && result == expected;
  }

  Result<bool> Saxpy() {
    const auto x = Values<float>(kElements, 1), y = Values<float>(kElements, 2);
    std::vector<float> expected(kElements), result(kElements);
    for (std::size_t i = 0; i < kElements; ++i) expected[i] = 3 * x[i] + y[i];
    return Compute(Job()
                       .Write(in_, x)
                       .Write(out_, y)
                       .Launch(module_.kernel("saxpy"), Dim3{kElements / kBlock}, Dim3{kBlock},
                               3.0f, in_, out_)
                       .Read(out_, result),
                   result, expected);
  }

  Result<bool> Sum() {
    const auto in = Values<std::uint32_t>(kElements, 3);
    std::vector<std::uint32_t> expected(kElements / kBlock), result(kElements / kBlock);
    for (std::size_t i = 0; i < kElements; ++i) expected[i / kBlock] += in[i];
    return Compute(Job()
                       .Write(in_, in)
                       .Launch(module_.kernel("sum"), Dim3{kElements / kBlock}, Dim3{kBlock}, in_,
                               out_, Local{kBlock * sizeof(std::uint32_t)})
                       .Read(out_, result),
                   result, expected);
  }

  Result<bool> Stencil() {
    const auto in = Values<std::int32_t>(kWidth * kHeight, 4);
    std::vector<std::int32_t> expected = in, result(in.size());
    for (std::size_t y = 1; y + 1 < kHeight; ++y) {
      for (std::size_t x = 1; x + 1 < kWidth; ++x) {
        const std::size_t i = y * kWidth + x;
        expected[i] = 4 * in[i] - in[i - 1] - in[i + 1] - in[i - kWidth] - in[i + kWidth];
      }
    }
    return Compute(Job()
                       .Write(in_, in)
                       .Launch(module_.kernel("stencil"), Dim3{kWidth / kTile, kHeight / kTile},
                               Dim3{kTile, kTile}, in_, out_)
                       .Read(out_, result),
                   result, expected);
  }

  Session session_;
  Module module_;
  Buffer in_, out_;
  std::uint32_t seed_;
  std::uint64_t computed_ = 0, wrong_ = 0;
};

// Computes without end on a thread of its own.
class Computing {
 public:
  explicit Computing(Calculator& calculator) {
    thread_ = std::thread([this, &calculator] {
      while (!stopping_ && status_.ok()) status_ = calculator.Round();
    });
  }
  Status Finish() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    return status_;
  }
  ~Computing() { (void)Finish(); }

 private:
  std::atomic<bool> stopping_{false};
  Status status_;
  std::thread thread_;
};

}  // namespace

Result<Measurement> MeasureRealKernel(Length length) {
  test::DaemonOptions on_opencl;
  on_opencl.flags = {"--device=opencl"};
  Result<std::unique_ptr<test::DaemonProcess>> daemon =
      test::DaemonProcess::Start(std::move(on_opencl));
  if (!daemon.ok()) {
    // The daemon itself says whether it is the platform that is missing.
    const bool lacks_platform =
        daemon.status().message().find("pocl-opencl-icd") != std::string::npos;
    if (!lacks_platform) return daemon.status();
    return Measurement{.figures = {},
                       .not_run = "no OpenCL platform: apt-get install pocl-opencl-icd",
                       .remark = {}};
  }
  Result<admin::AdminClient> admin = admin::AdminClient::Connect((*daemon)->admin_endpoint());
  if (!admin.ok()) return admin.status();
  std::vector<std::unique_ptr<Calculator>> calculators;
  for (const std::uint32_t seed : {1'000u, 2'000u}) {
    Result<std::unique_ptr<Calculator>> calculator = Calculator::Open((*daemon)->endpoint(), seed);
    if (!calculator.ok()) return calculator.status();
    calculators.push_back(*std::move(calculator));
  }
  {
    Computing first(*calculators[0]), second(*calculators[1]);
    const std::vector<PolicyChoice> policies = BuiltInPolicies();
    const int swaps = length == Length::kFull ? 10 * kSwaps : kSwaps;
    const nanoseconds begin = DaemonNow();
    for (int i = 0; i < swaps; ++i) {
      const std::string& kind = policies[static_cast<std::size_t>(i) % policies.size()].kind;
      const Result<admin::Policy> set = admin->SetPolicy({.kind = kind});
      if (!set.ok()) return set.status();
      WaitUntil(begin + (i + 1) * nanoseconds(kBetweenSwaps));
    }
    for (Computing* computing : {&first, &second}) {
      if (Status status = computing->Finish(); !status.ok()) return status;
    }
  }
  const double wrong = static_cast<double>(calculators[0]->wrong() + calculators[1]->wrong());
  const double fewest =
      static_cast<double>(std::min(calculators[0]->computed(), calculators[1]->computed()));
  return Measurement{
      .figures = {AtMost("results that differ from the CPU's", wrong, "", 0),
                  AtLeast("kernels computed by the slower of two sessions", fewest, "", 3)},
      .not_run = {},
      .remark = std::to_string(calculators[0]->computed() + calculators[1]->computed()) +
                " kernels on " + calculators[0]->device_name()};
}

}  // namespace gpusched::bench
