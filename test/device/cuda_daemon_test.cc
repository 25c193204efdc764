// The daemon with the CUDA device on the stand-in, from outside: what clients and operators see.
#include <fstream>
#include <iterator>
#include <numeric>

#include "daemon/fixture.h"
#include "gpusched/reasons.h"

namespace gpusched::test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHeader = ".version 7.0\n.target sm_75\n.address_size 64\n";
// out[i] = the block it is in.
constexpr const char* kBlocks = R"(
.visible .entry blocks(.param .u64 out) {
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r1;
  ret;
}
)";
constexpr const char* kWild = R"(
.visible .entry wild() {
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 64;
  st.global.u64 [%rd1], %rd1;
  ret;
}
)";

// Each block counts for long, and then waits while a word that is zero is not: never cut.
constexpr const char* kLong = R"(
.visible .entry counts(.param .u64 flag) {
  .reg .pred %p<3>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [flag];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, 0;
again:
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 20000;
  @%p1 bra again;
waits:
  ld.volatile.global.u32 %r2, [%rd2];
  setp.ne.u32 %p2, %r2, 0;
  @%p2 bra waits;
  ret;
}
)";

class CudaDaemon : public WithDaemon {
 protected:
  void SetUp() override {
    DaemonOptions options;
    options.binary = GPUSCHED_CUDA_SIM;
    options.flags = {"--device=auto", "--devices=2"};
    daemon_ = Take(DaemonProcess::Start(std::move(options)));
    client_ = std::make_unique<Client>(Take(Client::Connect({.endpoint = daemon_->endpoint()})));
    admin_ = std::make_unique<admin::AdminClient>(
        Take(admin::AdminClient::Connect(daemon_->admin_endpoint())));
  }
  // What waiting for the job answers: the call's error, or the job's own.
  static Status Outcome(Session& session, const Job& job) {
    Result<Submission> submission = session.Submit(job);
    if (!submission.ok()) return submission.status();
    const Result<JobReport> report = submission->Wait();
    return report.ok() ? report->why : report.status();
  }
  static std::string Fixture(const std::string& name) {
    std::ifstream file(std::string(GPUSCHED_PTX_FIXTURES) + "/" + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
};

TEST_F(CudaDaemon, ALaunchCutByTheSchedulerGivesWhatTheWholeGives) {
  Session session = Open({.device = "0"});
  EXPECT_THAT(session.device().name, HasSubstr("stand-in"));
  const std::string text = std::string(kHeader) + kBlocks;
  const Module module = Take(session.LoadModule({.ptx = text}));
  constexpr std::uint32_t kGrid = 2'000, kBlock = 32;
  const Buffer out = Take(session.Allocate(kGrid * kBlock * 4));
  std::vector<std::uint32_t> seen(kGrid * kBlock);
  for (int round = 0; round < 3; ++round) {
    const Status done = Outcome(
        session,
        Job().Launch(module.kernel("blocks"), Dim3{kGrid}, Dim3{kBlock}, out).Read(out, seen));
    ASSERT_TRUE(done.ok()) << done.ToString();
    for (std::uint32_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], i / kBlock);
  }
  // The scheduler did cut it.
  const std::vector<admin::Session> sessions = Take(admin_->Sessions());
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_GT(sessions[0].commands, 3u * 2);
}

// On a stream of its own a higher session waits for a block at most, not for the end of what cannot
// be cut.
TEST_F(CudaDaemon, AHigherSessionStartsAndEndsWhileALowerOneRuns) {
  Take(admin_->SetPolicy({.kind = "preemptive_priority"}));
  Session low = Open({.device = "0"}), high = Open({.device = "0", .share = {.priority = 1}});
  const Module counts = Take(low.LoadModule({.ptx = std::string(kHeader) + kLong}));
  const Module blocks = Take(high.LoadModule({.ptx = std::string(kHeader) + kBlocks}));
  EXPECT_FALSE(Take(admin_->Modules())[0].kernels[0].cuttable);
  const Buffer flag = Take(low.Allocate(4)), out = Take(high.Allocate(256));
  Submission long_one = Take(low.Submit(Job().Launch(counts.kernel("counts"), {300}, {1}, flag)));
  ASSERT_TRUE(Eventually([&] { return Take(admin_->Sessions())[0].jobs_running > 0; }));
  const JobReport quick =
      Take(Take(high.Submit(Job().Launch(blocks.kernel("blocks"), {1}, {32}, out))).Wait());
  const JobReport slow = Take(long_one.Wait());
  EXPECT_LT(quick.ended, slow.ended);
  // Each instant is charged once.
  EXPECT_LE(quick.charged + slow.charged, slow.total);
}

TEST_F(CudaDaemon, OneStreamKeepsOrderAndOneForEachPriorityDoesNot) {
  EXPECT_FALSE(Take(admin_->Devices())[0].order_kept);
  DaemonOptions options;
  options.binary = GPUSCHED_CUDA_SIM;
  options.yaml = "version: 1\ndevice: {kind: cuda, priority_streams: false}\n";
  const auto ordered = Take(DaemonProcess::Start(std::move(options)));
  auto admin = Take(admin::AdminClient::Connect(ordered->admin_endpoint()));
  EXPECT_TRUE(Take(admin.Devices())[0].order_kept);
}

TEST_F(CudaDaemon, AModuleOfSeveralImagesAndItsKernelsReasons) {
  Session session = Open({.device = "0"});
  const std::string cubin = Fixture("images/sm_75.cubin"), ptx = Fixture("unsafe/spin_plain.ptx");
  const Module module = Take(session.LoadModule({.ptx = ptx, .cubin = cubin}));
  const std::vector<admin::Module> modules = Take(admin_->Modules());
  ASSERT_EQ(modules.size(), 1u);
  ASSERT_FALSE(modules[0].kernels.empty());
  EXPECT_FALSE(modules[0].kernels[0].cuttable);
  EXPECT_FALSE(modules[0].kernels[0].whole_reason.empty());
  const Status none = session.LoadModule({.cubin = cubin}).status();
  EXPECT_THAT(none, Refused(reason::kNoUsableImage));
  EXPECT_THAT(none.message(), HasSubstr("machine code for another GPU"));
}

TEST_F(CudaDaemon, AMissingKernelIsAnsweredWithThoseThereAre) {
  Session session = Open({.device = "0"});
  const Module module = Take(session.LoadModule({.ptx = Fixture("compiled/functions.ptx")}));
  const Status missing = Outcome(session, Job().Launch(module.kernel("Nothing"), {1}, {1}));
  EXPECT_THAT(missing, Refused(reason::kUnknownKernel));
  EXPECT_THAT(missing.message(), HasSubstr("_Z10CallsWherePi"));
  const Buffer out = Take(session.Allocate(4'096));
  EXPECT_TRUE(Outcome(session, Job().Launch(module.kernel("CallsWhere"), {2}, {16}, out)).ok());
  EXPECT_TRUE(
      Outcome(session, Job().Launch(module.kernel("_Z10CallsWherePi"), {2}, {16}, out)).ok());
}

TEST_F(CudaDaemon, AFaultIsToldToItsSessionAndTheOtherDeviceWorksOn) {
  Session wild = Open({.name = "wild", .device = "0"}), calm = Open({.device = "1"});
  const std::string wild_text = std::string(kHeader) + kWild, text = std::string(kHeader) + kBlocks;
  const Module bad = Take(wild.LoadModule({.ptx = wild_text}));
  const Status lost = Outcome(wild, Job().Launch(bad.kernel("wild"), {1}, {1}));
  EXPECT_THAT(lost, Refused(reason::kDeviceLost));
  EXPECT_THAT(lost.message(), HasSubstr("cudaErrorIllegalAddress (700)"));
  EXPECT_THAT(lost.message(), HasSubstr("kernel 'wild' of session"));
  // What comes later is answered, too.
  EXPECT_THAT(Outcome(wild, Job().Launch(bad.kernel("wild"), {1}, {1})),
              Refused(reason::kDeviceLost));
  EXPECT_THAT(client_->OpenSession({.device = "0"}).status(), Refused(reason::kDeviceLost));
  const Module good = Take(calm.LoadModule({.ptx = text}));
  const Buffer out = Take(calm.Allocate(4'096));
  EXPECT_TRUE(Outcome(calm, Job().Launch(good.kernel("blocks"), {4}, {32}, out)).ok());
  EXPECT_TRUE(daemon_->running());
  EXPECT_TRUE(daemon_->WaitForLog("is lost: cudaErrorIllegalAddress (700)", kSoon));
}

}  // namespace
}  // namespace gpusched::test
