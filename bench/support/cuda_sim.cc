// Requests in three launches and an update in one long one; every result is compared with the CPU.
#include "support/cuda_sim.h"

#include <cstdint>
#include <deque>
#include <utility>

#include "ctl/admin_client.h"
#include "gpusched/client.h"
#include "support/daemon_process.h"
#include "support/main_job.h"
#include "support/real_work.h"

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;

// The interpreter runs some ten million instructions a second: a block takes about 50 us, so that a
// chunk of half a millisecond has several.
constexpr std::uint32_t kBlock = 32, kRounds = 16;
constexpr std::uint32_t kRequestBlocks = 40, kRequestLaunches = 3, kUpdateBlocks = 800;
constexpr double kLoad = 0.3;  // of the device, by requests
constexpr milliseconds kLeadIn{200};
// A load that says nothing of a job's end has no more than this outstanding.
constexpr std::size_t kMostOutstanding = 4;

// out[i] = in[i] turned `rounds` times: v -> 5 v + 3.
constexpr const char* kTurn = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry turn(.param .u64 out, .param .u64 in, .param .u32 rounds) {
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [in];
  ld.param.u32 %r1, [rounds];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %rd5, %r5, 4;
  add.s64 %rd6, %rd4, %rd5;
  add.s64 %rd7, %rd3, %rd5;
  ld.global.u32 %r6, [%rd6];
  mov.u32 %r7, 0;
AGAIN:
  setp.ge.u32 %p1, %r7, %r1;
  @%p1 bra DONE;
  mad.lo.u32 %r6, %r6, 5, 3;
  add.u32 %r7, %r7, 1;
  bra AGAIN;
DONE:
  st.global.u32 [%rd7], %r6;
  ret;
}
)";

std::uint32_t Turned(std::uint32_t value, std::uint32_t rounds) {
  for (std::uint32_t round = 0; round < rounds; ++round) value = value * 5 + 3;
  return value;
}

// A job's bytes from the device, and whether they are there.
struct Answer {
  std::vector<std::uint32_t> values, expected;
  bool arrived = false;
};

// `launches` launches of `blocks`, each turning what the one before it gave.
struct Shape {
  std::uint32_t blocks = 1, launches = 1;
};

class Turns final : public Work {
 public:
  static Result<std::unique_ptr<Work>> Open(Session& session, Shape shape) {
    Result<Module> module = session.LoadModule({.ptx = kTurn});
    if (!module.ok()) return module.status();
    const std::uint64_t bytes = std::uint64_t{shape.blocks} * kBlock * sizeof(std::uint32_t);
    Result<Buffer> front = session.Allocate(bytes), back = session.Allocate(bytes);
    if (!front.ok()) return front.status();
    if (!back.ok()) return back.status();
    return std::unique_ptr<Work>(
        new Turns(session, *std::move(module), *std::move(front), *std::move(back), shape));
  }

  Result<Submission> Submit(Duration, const SubmitOptions& given) override {
    const std::size_t number = answers_.size();
    Answer& answer = answers_.emplace_back();
    std::vector<std::uint32_t> values(std::size_t{shape_.blocks} * kBlock);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::uint32_t>(i * 2'654'435'761u + number);
    }
    answer.values.resize(values.size());
    Job job;
    job.Write(front_, values);
    const Buffer *from = &front_, *to = &back_;
    for (std::uint32_t launch = 0; launch < shape_.launches; ++launch) {
      job.Launch(module_.kernel("turn"), Dim3{shape_.blocks}, Dim3{kBlock}, *to, *from, kRounds);
      std::swap(from, to);
    }
    job.Read(*from, answer.values);
    answer.expected = std::move(values);
    SubmitOptions options = given;
    if (given.on_done) {
      options.on_done = [&answer, told = given.on_done](const Result<JobReport>& report) {
        answer.arrived = report.ok() && report->outcome == Outcome::kDone;
        told(report);
      };
    } else if (number >= kMostOutstanding) {
      answers_[number - kMostOutstanding].arrived = true;
    }
    return session_.Submit(job, options);
  }
  Duration KernelTime(Duration) const override { return kernel_time; }

  Result<Checked> Check() override {
    Checked checked;
    for (const Answer& answer : answers_) {
      if (!answer.arrived) continue;
      ++checked.compared;
      bool right = true;
      for (std::size_t i = 0; right && i < answer.values.size(); i += kBlock - 1) {
        right = answer.values[i] == Turned(answer.expected[i], kRounds * shape_.launches);
      }
      if (!right) ++checked.wrong;
    }
    checked.remark =
        std::to_string(shape_.launches) + " x " + std::to_string(shape_.blocks) + " blocks a job";
    return checked;
  }

  Duration kernel_time{0};

 private:
  Turns(Session& session, Module module, Buffer front, Buffer back, Shape shape)
      : session_(session),
        module_(std::move(module)),
        front_(std::move(front)),
        back_(std::move(back)),
        shape_(shape) {}

  Session& session_;
  Module module_;
  Buffer front_, back_;
  const Shape shape_;
  std::deque<Answer> answers_;  // they stay where they are
};

// Measured when first made, while nothing else runs.
MakeWork WorkOf(admin::AdminClient& admin, Shape shape, std::shared_ptr<Duration> kernel_time) {
  return [&admin, shape, kernel_time](Session& session) -> Result<std::unique_ptr<Work>> {
    Result<std::unique_ptr<Work>> work = Turns::Open(session, shape);
    if (!work.ok()) return work;
    if (*kernel_time == Duration::zero()) {
      const Result<Duration> measured =
          KernelTimeAlone(admin, session, [&] { return (*work)->Submit({}, {}); });
      if (!measured.ok()) return measured.status();
      *kernel_time = *measured;
    }
    static_cast<Turns&>(**work).kernel_time = *kernel_time;
    return work;
  };
}

// What one takes while nothing else runs; from a session of its own.
Result<Duration> RequestAlone(admin::AdminClient& admin, const std::string& endpoint,
                              std::shared_ptr<Duration> kernel_time, std::string& device) {
  const Result<Client> client = Client::Connect({.endpoint = endpoint});
  if (!client.ok()) return client.status();
  Result<Session> session = client->OpenSession({.name = "probe"});
  if (!session.ok()) return session.status();
  device = session->device().name;
  const Result<std::unique_ptr<Work>> work =
      WorkOf(admin, {kRequestBlocks, kRequestLaunches}, kernel_time)(*session);
  if (!work.ok()) return work.status();
  return *kernel_time;
}

}  // namespace

Result<CudaSimRun> RunCudaSim(const std::string& program, std::chrono::seconds length,
                              const std::function<void(const PolicyChoice&, Duration into)>& tick) {
  test::DaemonOptions daemon_options;
  daemon_options.binary = program;
  daemon_options.flags = {"--device=cuda"};
  Result<std::unique_ptr<test::DaemonProcess>> daemon = test::DaemonProcess::Start(daemon_options);
  if (!daemon.ok()) return daemon.status();
  Result<admin::AdminClient> admin = admin::AdminClient::Connect((*daemon)->admin_endpoint());
  if (!admin.ok()) return admin.status();

  CudaSimRun run;
  run.policies = BuiltInPolicies();
  const auto request_time = std::make_shared<Duration>(0),
             update_time = std::make_shared<Duration>(0);
  const Result<Duration> request =
      RequestAlone(*admin, (*daemon)->endpoint(), request_time, run.device);
  if (!request.ok()) return request.status();
  run.request = *request;
  run.requests_per_second = kLoad * 1e9 / static_cast<double>(request->count());

  Timetable timetable{.start = {}, .length = length};
  BesideUpdateOptions options{.endpoint = (*daemon)->endpoint(), .target = kMainTarget};
  options.requests =
      Repeated(Poisson(run.requests_per_second, run.request, timetable.each(), kMainSeed),
               timetable.each(), static_cast<int>(run.policies.size()));
  options.request_work = WorkOf(*admin, {kRequestBlocks, kRequestLaunches}, request_time);
  options.update_work = WorkOf(*admin, {kUpdateBlocks, 1}, update_time);
  Result<std::unique_ptr<BesideUpdate>> job = BesideUpdate::Open(options);
  if (!job.ok()) return job.status();
  run.update = *update_time;
  timetable.start = std::chrono::steady_clock::now() + kLeadIn;
  if (Status status = (*job)->Begin(timetable.start); !status.ok()) return status;
  auto windows = UnderEachPolicy(*admin, {job->get()}, run.policies, timetable, tick);
  if (!windows.ok()) return windows.status();
  for (auto& window : *windows) run.windows.push_back(std::move(window.front()));
  Result<BesideUpdate::Results> results = (*job)->Finish();
  if (!results.ok()) return results.status();
  run.results = *std::move(results);
  return run;
}

}  // namespace gpusched::bench
