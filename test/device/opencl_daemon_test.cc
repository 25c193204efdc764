// What clients and operators may do wrong on a daemon with an OpenCL device, and what they see.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "daemon/fixture.h"
#include "gpusched/reasons.h"

namespace gpusched::test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSource =
    "kernel void put(global int *x, int value) { x[get_global_id(0)] = value; }\n"
    "kernel void shared(global int *x, local int *s) { s[0] = 1; x[0] = s[0]; }\n"
    "kernel void over(global int *x) { x[0] = x[1] / x[2]; }\n"
    "kernel void await(global int *x, volatile global int *go) { while (*go == 0) {} x[0] = 1; }\n";

class OpenClDaemon : public WithDaemon {
 protected:
  void SetUp() override {
    auto daemon = DaemonProcess::Start({.flags = {"--device=opencl"}});
    if (!daemon && daemon.status().message().find("pocl-opencl-icd") != std::string::npos) {
      GTEST_SKIP() << "no OpenCL driver on this machine";
    }
    daemon_ = Take(std::move(daemon));
    client_ = std::make_unique<Client>(Take(Client::Connect({.endpoint = daemon_->endpoint()})));
    admin_ = std::make_unique<admin::AdminClient>(
        Take(admin::AdminClient::Connect(daemon_->admin_endpoint())));
  }

  // What waiting for the job answers.
  static Status Outcome(Session& session, const Job& job) {
    Result<Submission> submission = session.Submit(job);
    if (!submission) return submission.status();
    return submission->Wait().status();
  }
};

TEST_F(OpenClDaemon, RefusesALaunchInTheWordsOfWhoeverWroteIt) {
  Session session = Open(), other = Open();
  const Module module = Take(session.LoadModule({.source = kSource}));
  const Buffer x = Take(session.Allocate(4096));
  const auto put = [&](Dim3 grid, Dim3 block, const auto&... arguments) {
    return Outcome(session, Job().Launch(module.kernel("put"), grid, block, arguments...));
  };
  EXPECT_TRUE(put({8}, {4}, x, 7).ok());
  const Status missing = Outcome(session, Job().Launch(module.kernel("push"), {1}, {1}, x, 7));
  EXPECT_THAT(missing, Refused(reason::kUnknownKernel));
  EXPECT_THAT(missing.message(), HasSubstr("await, over, put, shared"));
  EXPECT_THAT(put({1}, {1}, x), Refused(reason::kArgumentCount));
  EXPECT_THAT(put({1}, {1}, 7, x), Refused(reason::kArgumentKind));
  EXPECT_THAT(put({1}, {1}, x, 7.0), Refused(reason::kArgumentSize));
  EXPECT_THAT(put({1}, {1}, x, Local{4}), Refused(reason::kArgumentKind));
  EXPECT_THAT(put({1}, {1u << 20}, x, 7), Refused(reason::kBadBlock));
  EXPECT_THAT(put({0}, {1}, x, 7), Refused(reason::kBadGrid));
  const auto shared = module.kernel("shared");
  EXPECT_THAT(Outcome(session, Job().Launch(shared, {1}, {1}, x, Local{std::uint64_t{1} << 40})),
              Refused(reason::kLocalMemory));
  // Buffers are numbered within a session: another's is none of ours.
  const Module others = Take(other.LoadModule({.source = kSource}));
  EXPECT_FALSE(Outcome(other, Job().Launch(others.kernel("put"), {1}, {1}, x, 7)).ok());
  EXPECT_TRUE(put({8}, {4}, x, 7).ok());
}

// What every thread is told, after work enough for the launch to be cut.
constexpr const char* kPlaces =
    "SHAPE kernel void places(global uint *out, int rounds) {\n"
    "  const size_t x = get_global_id(0) - get_global_offset(0);\n"
    "  const size_t y = get_global_id(1) - get_global_offset(1);\n"
    "  global uint *mine = out + 8 * (y * get_global_size(0) + x);\n"
    "  float work = x;\n"
    "  for (int i = 0; i < rounds; ++i) work = work * 0.5f + 1.0f;\n"
    "  mine[0] += get_global_id(0) + (work < 0 ? 1 : 0);\n"
    "  mine[1] += get_global_id(1);\n"
    "  mine[2] += get_group_id(0) + 1000 * get_group_id(1);\n"
    "  mine[3] += get_num_groups(0) + 1000 * get_num_groups(1);\n"
    "  mine[4] += get_global_size(0) + 1000 * get_global_size(1);\n"
    "  mine[5] += get_local_size(0) + 1000 * get_local_size(1);\n"
    "  mine[6] += get_local_id(0) + 1000 * get_local_id(1);\n"
    "  mine[7] += get_work_dim() + 1000 * get_global_offset(0) + get_global_offset(1);\n"
    "}\n";

// By the definitions of OpenCL, sections 6.12.1 and 3.2 of 1.2.
std::vector<std::uint32_t> Places(Dim3 threads, Dim3 block, NdRange::Offset offset) {
  std::vector<std::uint32_t> places;
  for (std::uint32_t y = 0; y < threads.y; ++y) {
    for (std::uint32_t x = 0; x < threads.x; ++x) {
      for (const std::uint32_t value :
           {x + offset.x, y + offset.y, x / block.x + 1'000 * (y / block.y),
            threads.x / block.x + 1'000 * (threads.y / block.y), threads.x + 1'000 * threads.y,
            block.x + 1'000 * block.y, x % block.x + 1'000 * (y % block.y),
            2 + 1'000 * offset.x + offset.y}) {
        places.push_back(value);
      }
    }
  }
  return places;
}

TEST_F(OpenClDaemon, ALaunchByThreadsRunsInPartsAtItsOffset) {
  Session session = Open({.name = "places", .memory = 64 << 20});
  const auto placed = [&](const std::string& shape, const NdRange& range, int rounds) {
    const Module module = Take(session.LoadModule({.source = shape + kPlaces}));
    std::vector<std::uint32_t> out(std::size_t{8} * range.threads.x * range.threads.y);
    const Buffer buffer = Take(session.Allocate(4 * out.size()));
    const Status outcome = Outcome(
        session, Job().Launch(module.kernel("places"), range, buffer, rounds).Read(buffer, out));
    EXPECT_TRUE(outcome.ok()) << outcome.ToString();
    return out;
  };
  const auto commands = [&] { return Take(admin_->Sessions()).at(0).commands; };
  const std::string any = "#define SHAPE\n";
  const std::string fixed = "#define SHAPE __attribute__((reqd_work_group_size(10, 3, 1)))\n";
  const std::string whole = "#undef get_global_id\n" + any;
  constexpr int kRounds = 5'000;

  const NdRange with_block{.threads = {512, 64}, .block = {16, 4}, .offset = {1'000, 7}};
  const std::uint64_t before = commands();
  EXPECT_EQ(placed(any, with_block, kRounds), Places({512, 64}, {16, 4}, {1'000, 7}));
  EXPECT_GE(commands() - before, 4u) << "several parts, and the copy out";
  // Of 600 the largest divisor up to 256 is 200, and 256 / 200 rows are one.
  EXPECT_EQ(placed(any, {.threads = {600, 66}}, kRounds), Places({600, 66}, {200, 1}, {0, 0}));
  EXPECT_EQ(placed(fixed, {.threads = {600, 66}, .offset = {3, 0}}, kRounds),
            Places({600, 66}, {10, 3}, {3, 0}));
  const NdRange far{.threads = {64, 2}, .block = {8, 1}, .offset = {3'000'000, 1}};
  EXPECT_EQ(placed(whole, far, 1), Places({64, 2}, {8, 1}, {3'000'000, 1}));

  const Module module = Take(session.LoadModule({.source = any + kPlaces}));
  const Buffer buffer = Take(session.Allocate(1 << 20));
  const auto refused = [&](const NdRange& range) {
    return Outcome(session, Job().Launch(module.kernel("places"), range, buffer, 1));
  };
  EXPECT_THAT(refused(far), Refused(reason::kBadOffset));
  EXPECT_THAT(refused({.threads = {100}, .block = {64}}), Refused(reason::kBadBlock));
  EXPECT_THAT(refused({.threads = {0}}), Refused(reason::kBadGrid));
}

TEST_F(OpenClDaemon, TellsWhatTheCompilerSays) {
  Session session = Open();
  const Status broken =
      session.LoadModule({.source = "kernel void f(global int *x) {\n x[0] = nothing;\n}"})
          .status();
  EXPECT_THAT(broken, Refused(reason::kBuildFailed));
  EXPECT_THAT(broken.message(), HasSubstr(":2:"));
  EXPECT_THAT(broken.message(), HasSubstr("nothing"));
  const Status reads = session.LoadModule({.source = "\n#include \"/etc/hostname\"\n"}).status();
  EXPECT_THAT(reads.message(), HasSubstr("#include (line 2)"));
  const Module warned = Take(session.LoadModule(
      {.source = "#warning look here\nkernel void f(global int *x) { x[0] = 1; }"}));
  EXPECT_THAT(warned.build_log(), HasSubstr("look here"));
}

TEST_F(OpenClDaemon, RefusesMoreMemoryThanThereIs) {
  EXPECT_THAT(client_->OpenSession({.memory = std::uint64_t{1} << 60}).status(),
              Refused(reason::kDeviceMemory));
  Session session = Open({.memory = 1 << 20});
  EXPECT_THAT(session.Allocate((1 << 20) + 1).status(), Refused(reason::kQuotaExceeded));
  EXPECT_TRUE(session.Allocate(1 << 20).ok());
}

TEST_F(OpenClDaemon, SurvivesADivisionByZero) {
  Session session = Open();
  const Module module = Take(session.LoadModule({.source = kSource}));
  const Buffer x = Take(session.Allocate(64));
  // What it gives is the driver's affair; the daemon and the session go on.
  (void)Outcome(session, Job().Launch(module.kernel("over"), {1}, {1}, x));
  std::vector<int> out(16);
  EXPECT_TRUE(
      Outcome(session, Job().Launch(module.kernel("put"), {4}, {4}, x, 5).Read(x, out)).ok());
  EXPECT_EQ(out, std::vector<int>(16, 5));
  EXPECT_TRUE(daemon_->running());
}

TEST_F(OpenClDaemon, ListsWhichKernelsCannotBeCutAndWhy) {
  Session session = Open({.name = "lister"});
  const Module module = Take(session.LoadModule({.source = kSource}));
  const std::vector<admin::Module> modules = Take(admin_->Modules());
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].session_name, "lister");
  for (const admin::Module::Kernel& kernel : modules[0].kernels) {
    EXPECT_EQ(kernel.cuttable, kernel.name != "await") << kernel.name;
    EXPECT_EQ(kernel.whole_reason.empty(), kernel.cuttable) << kernel.name;
    if (!kernel.cuttable) {
      EXPECT_THAT(kernel.whole_reason, HasSubstr("line 4"));
    }
  }
}

TEST_F(OpenClDaemon, AModuleThatBuildsForLongHoldsUpNobody) {
  Session slow = Open(), quick = Open();
  const Module module = Take(quick.LoadModule({.source = kSource}));
  const Buffer x = Take(quick.Allocate(64));
  std::string many;
  for (int i = 0; i < 60; ++i) {
    many += "kernel void k" + std::to_string(i) +
            "(global float *x) { local float s[8]; for (int i = 0; i < 9; ++i) { "
            "s[get_local_id(0)] = x[i]; barrier(1); x[i + 9] = s[7] * " +
            std::to_string(i) + "; } }\n";
  }
  std::atomic<bool> built{false};
  std::thread builder([&] {
    EXPECT_TRUE(slow.LoadModule({.source = many}).ok());
    built = true;
  });
  int answered = 0;
  while (!built) {
    if (!Outcome(quick, Job().Launch(module.kernel("put"), {4}, {4}, x, 1)).ok()) break;
    EXPECT_TRUE(quick.Allocate(64).ok());
    ++answered;
  }
  builder.join();
  EXPECT_GE(answered, 10);
}

TEST(OpenClDrivers, WithoutAnyTheMessageNamesThePackage) {
  const auto daemon = DaemonProcess::Start(
      {.flags = {"--device=opencl"}, .environment = {{"OCL_ICD_VENDORS", "/nonexistent"}}});
  ASSERT_FALSE(daemon.ok());
  EXPECT_THAT(daemon.status().message(), HasSubstr("pocl-opencl-icd"));
}

TEST(OpenClDrivers, OneThatEndsTheProcessIsNamedNotFollowed) {
  const std::filesystem::path vendors =
      std::filesystem::temp_directory_path() / ("gpusched-vendors-" + std::to_string(getpid()));
  std::filesystem::create_directories(vendors);
  std::ofstream(vendors / "aborting.icd") << ABORTING_DRIVER << "\n";
  const auto daemon = DaemonProcess::Start(
      {.flags = {"--device=opencl"}, .environment = {{"OCL_ICD_VENDORS", vendors.string()}}});
  ASSERT_FALSE(daemon.ok());
  EXPECT_THAT(daemon.status().message(), HasSubstr("ended the process"));
  EXPECT_THAT(daemon.status().message(), HasSubstr("OCL_ICD_VENDORS"));
  std::filesystem::remove_all(vendors);
}

TEST(OpenClSettings, LeaveUnitsToTheHostOrSayWhyNot) {
  const auto with = [](const std::string& units) {
    return DaemonProcess::Start(
        {.yaml = "version: 1\ndevice: {kind: opencl, spare_units: " + units + ", in_flight: 4}\n",
         .flags = {}});
  };
  const auto none_left = with("1024");
  ASSERT_FALSE(none_left.ok());
  if (none_left.status().message().find("pocl-opencl-icd") != std::string::npos) {
    GTEST_SKIP() << "no OpenCL driver on this machine";
  }
  EXPECT_THAT(none_left.status().message(), HasSubstr("device.spare_units"));
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor cannot be divided";
  const auto daemon = Take(with("1"));
  Session session = Take(Take(Client::Connect({.endpoint = daemon->endpoint()})).OpenSession());
  EXPECT_EQ(session.device().compute_units, std::thread::hardware_concurrency() - 1);
  const Module module = Take(session.LoadModule({.source = kSource}));
  const Buffer x = Take(session.Allocate(64));
  std::vector<int> out(16);
  Result<Submission> job =
      session.Submit(Job().Launch(module.kernel("put"), {4}, {4}, x, 5).Read(x, out));
  ASSERT_TRUE(job.ok());
  EXPECT_TRUE(job->Wait().ok());
  EXPECT_EQ(out, std::vector<int>(16, 5));
}

}  // namespace
}  // namespace gpusched::test
