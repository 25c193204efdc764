// The OpenCL device beside the contract of every device, and what is its own.
#include <dirent.h>
#include <sys/resource.h>

#include "conformance/device_conformance.h"
#include "device/opencl_machine.h"

namespace gpusched::device {
namespace {

using ::testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(
    OpenCl, DeviceConformance,
    ::testing::Values(Subject{
        .name = "opencl",
        .open = OpenClOfThisMachine,
        .good = Source("kernel void touch(global uint *data, uint value) {\n"
                       "  if (get_global_id(0) == 0) data[0] = value;\n"
                       "}\n"
                       "kernel void plain(void) {}\n"),
        .broken = Source(
            "kernel void plain(void) {}\nkernel void touch(global uint *data) { data[0] = x; }\n"),
        .foreign = {.format = Image::Format::kVirtual,
                    .bytes = "kernel plain time_per_block=0\n"}}),
    [](const auto& subject) { return subject.param.name; });

class OpenCl : public ::testing::Test {
 protected:
  static constexpr SessionId kSession{.slot = 0, .serial = 1};

  void SetUp() override {
    device_ = OpenClOfThisMachine(sink_, 0);
    if (device_ == nullptr) GTEST_SKIP() << "no OpenCL driver on this machine";
    orders_ = std::make_unique<Orders>(*device_, sink_);
    ASSERT_TRUE(device_->OpenSession(kSession, {.memory_bytes = 64 << 20}).ok());
  }
  ModuleInfo Load(const std::string& source) {
    const Prepared loaded = orders_->Load(kSession, 1, Source(source));
    EXPECT_TRUE(loaded.status.ok()) << loaded.status.ToString();
    return loaded.module;
  }
  Completion Launch(std::uint32_t kernel, Dim3 grid, Dim3 block, std::vector<Argument> arguments) {
    return orders_->Run({orders_->Launch(kSession, 1, kernel, grid, block, std::move(arguments))});
  }

  RecordingSink sink_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Orders> orders_;
};

TEST_F(OpenCl, TellsTheSizesOfParametersOfEveryKind) {
  const ModuleInfo module = Load(
      "typedef struct { int a; double b; char c[5]; } pair;\n"
      "typedef float real;\n"
      "enum colour { RED, GREEN };\n"
      "kernel void all(global float *b, constant int *k, local int *l, uchar c, short s, uint i, "
      "ulong q,\n"
      "                float f, float3 v, char16 w, pair p, real r, enum colour e) {\n"
      "  b[0] = k[0] + l[0] + c + s + i + q + f + v.x + w.s0 + p.a + r + e;\n"
      "}\n");
  ASSERT_EQ(module.kernels.size(), 1u);
  std::vector<std::uint32_t> sizes;
  std::vector<Parameter::Kind> kinds;
  for (const Parameter& parameter : module.kernels[0].parameters) {
    sizes.push_back(parameter.size);
    kinds.push_back(parameter.kind);
  }
  EXPECT_THAT(sizes, ::testing::ElementsAre(0, 0, 0, 1, 2, 4, 8, 4, 16, 16, 24, 4, 4));
  EXPECT_EQ(kinds[0], Parameter::Kind::kBuffer);
  EXPECT_EQ(kinds[1], Parameter::Kind::kBuffer);
  EXPECT_EQ(kinds[2], Parameter::Kind::kLocal);
  EXPECT_EQ(kinds[3], Parameter::Kind::kValue);
  EXPECT_EQ(module.kernels[0].parameters[10].name, "p");
}

TEST_F(OpenCl, TellsBlockAndLocalMemoryAndThatLaunchesMayBeCut) {
  const ModuleInfo module = Load(
      "kernel __attribute__((reqd_work_group_size(8, 2, 1))) void fixed(global int *x) {\n"
      "  local int shared[100];\n"
      "  shared[get_local_id(0)] = 1;\n"
      "  barrier(CLK_LOCAL_MEM_FENCE);\n"
      "  x[0] = shared[3];\n"
      "}\n");
  const KernelInfo& fixed = module.kernels.at(0);
  EXPECT_EQ(fixed.required_block.x, 8u);
  EXPECT_EQ(fixed.required_block.y, 2u);
  EXPECT_EQ(fixed.required_block.z, 1u);
  EXPECT_EQ(fixed.static_local_bytes, 400u);
  EXPECT_TRUE(fixed.cuttable) << fixed.whole_reason;
  EXPECT_TRUE(device_->info().can_cut);
  // Blocks that all run side by side may wait for each other.
  EXPECT_EQ(device_->info().whole_up_to_blocks, device_->info().compute_units);
}

TEST_F(OpenCl, AStructArrivesWhole) {
  struct Pair {
    std::int32_t a;
    std::int32_t b;
  };
  Load(
      "typedef struct { int a; int b; } pair;\n"
      "kernel void sum(global int *x, pair p) { x[0] = 10 * p.a + p.b; }\n");
  ASSERT_TRUE(orders_->Allocate(kSession, 1, 4).ok());
  EXPECT_EQ(Launch(0, {}, {}, {BufferArgument{.buffer = 1}, Value(Pair{4, 2})}).outcome,
            Completion::Outcome::kDone);
  EXPECT_EQ(orders_->Read<std::int32_t>(kSession, 1, 1), std::vector<std::int32_t>{42});
}

TEST_F(OpenCl, LeavesOutKernelsASessionCannotLaunchAndSaysSo) {
  const ModuleInfo module = Load(
      "kernel void picture(read_only image2d_t image, sampler_t how, global int *x) {\n"
      "  x[0] = read_imagei(image, how, (int2)(0, 0)).x;\n"
      "}\n"
      "kernel void plain(global int *x) { x[0] = 1; }\n");
  ASSERT_EQ(module.kernels.size(), 1u);
  EXPECT_EQ(module.kernels[0].name, "plain");
  EXPECT_THAT(module.build_log, HasSubstr("kernel 'picture' is left out"));
}

TEST_F(OpenCl, TheBuildLogReachesWhoeverLoads) {
  const Status status =
      orders_
          ->Load(kSession, 1, Source("kernel void f(global int *x) { x[0] = undeclared_thing; }"))
          .status;
  EXPECT_EQ(status.reason(), reason::kBuildFailed);
  EXPECT_THAT(status.message(), HasSubstr("undeclared_thing"));
  for (const char* source : {"", "\n// no kernel\n", "int helper(int x) { return x; }\n"}) {
    EXPECT_FALSE(orders_->Load(kSession, 1, Source(source)).status.ok()) << source;
  }
}

TEST_F(OpenCl, AKernelGoesByItsNameInTheSource) {
  const ModuleInfo module = Load(
      "kernel void step(global int *x) { x[0] = 7; }\n"
      "kernel void plain(global int *x) { x[0] = 8; }\n"
      "#define NAMED(n) kernel void n##_made(global int *x) { x[0] = 9; }\nNAMED(_cl)\n"
      "kernel void await(global int *x) { while (atomic_or(x, 0) == 0) {} }\n");
  std::vector<std::string> names;
  for (const KernelInfo& kernel : module.kernels) {
    names.push_back(kernel.name);
    EXPECT_EQ(kernel.cuttable, kernel.name != "await") << kernel.name << kernel.whole_reason;
  }
  // PoCL calls the first one _cl_step.
  EXPECT_EQ(names, (std::vector<std::string>{"_cl_made", "await", "plain", "step"}));
  ASSERT_TRUE(orders_->Allocate(kSession, 1, 4).ok());
  EXPECT_EQ(Launch(3, {}, {}, {BufferArgument{.buffer = 1}}).outcome, Completion::Outcome::kDone);
  EXPECT_EQ(orders_->Read<int>(kSession, 1, 1), std::vector<int>{7});
}

// What stands behind it would be judged, and never compiled.
TEST_F(OpenCl, RefusesASourceWithAZeroByte) {
  std::string source = "kernel void f(global int *x) { x[0] = 1; }\n";
  const std::size_t end = source.size();
  source += '\0';
  const Status status = orders_->Load(kSession, 1, Source(source + "f")).status;
  EXPECT_EQ(status.reason(), reason::kBadModule);
  EXPECT_THAT(status.message(), HasSubstr("zero byte, at " + std::to_string(end)));
}

TEST_F(OpenCl, ABufferArgumentMayBeginInside) {
  const std::uint64_t aligned = device_->info().offset_alignment;
  Load("kernel void put(global int *x, int value) { x[0] = value; }\n");
  ASSERT_TRUE(orders_->Allocate(kSession, 1, 4 * aligned).ok());
  for (int round = 0; round < 2; ++round) {  // the second finds the part it needs
    for (int i = 0; i < 4; ++i) {
      const auto put =
          Launch(0, {}, {}, {BufferArgument{.buffer = 1, .offset = i * aligned}, Value(i + round)});
      EXPECT_EQ(put.outcome, Completion::Outcome::kDone) << put.error.ToString();
    }
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(orders_->Read<int>(kSession, 1, 1, i * aligned), std::vector<int>{i + round});
    }
  }
  const Completion refused =
      Launch(0, {}, {}, {BufferArgument{.buffer = 1, .offset = 4}, Value(1)});
  EXPECT_EQ(refused.outcome, Completion::Outcome::kFailed);
  EXPECT_EQ(refused.error.reason(), reason::kMisaligned);
  EXPECT_THAT(refused.error.message(), HasSubstr(std::to_string(aligned)));
}

TEST_F(OpenCl, ManyDifferentOffsetsKeepNothingForGood) {
  const std::uint64_t aligned = device_->info().offset_alignment;
  constexpr int kOffsets = 1'000;
  Load(
      "kernel void put(global int *x, global int *y, int value) { x[0] = value; y[0] = -value; "
      "}\n");
  ASSERT_TRUE(orders_->Allocate(kSession, 1, 2 * kOffsets * aligned).ok());
  Ticket last{};
  for (int i = 0; i < kOffsets; ++i) {
    // The first begins where the buffer does, so it is between two arguments that others are
    // forgotten.
    const BufferArgument x{.buffer = 1, .offset = i * aligned};
    const BufferArgument y{.buffer = 1, .offset = (kOffsets + i) * aligned};
    last = orders_->Start({orders_->Launch(kSession, 1, 0, {}, {}, {x, y, Value(i)})});
  }
  ASSERT_EQ(sink_.Finished(last).outcome, Completion::Outcome::kDone);
  for (int i : {0, 1, 127, 128, 129, 255, 256, 257, 999}) {
    EXPECT_EQ(orders_->Read<int>(kSession, 1, 1, i * aligned), std::vector<int>{i});
    EXPECT_EQ(orders_->Read<int>(kSession, 1, 1, (kOffsets + i) * aligned), std::vector<int>{-i});
  }
}

TEST_F(OpenCl, WhatTheDriverRefusesFailsByTheDriversName) {
  Load("kernel void put(global int *x, int value) { x[0] = value; }\n");
  ASSERT_TRUE(orders_->Allocate(kSession, 1, 4).ok());
  const auto block = static_cast<std::uint32_t>(device_->info().max_block_threads + 1);
  const Completion refused = Launch(0, {}, {.x = block}, {BufferArgument{.buffer = 1}, Value(1)});
  EXPECT_EQ(refused.outcome, Completion::Outcome::kFailed);
  EXPECT_EQ(refused.error.reason(), reason::kDeviceFailed);
  EXPECT_THAT(refused.error.message(), HasSubstr("CL_INVALID_WORK_"));
  EXPECT_THAT(refused.error.message(), HasSubstr("'put'"));
  EXPECT_EQ(Launch(0, {}, {}, {BufferArgument{.buffer = 1}, Value(1)}).outcome,
            Completion::Outcome::kDone);
}

TEST_F(OpenCl, NeverRunsALaunchOtherThanTheOneAskedFor) {
  Load("kernel void put(global int *x, int value) { x[0] += value; }\n");
  ASSERT_TRUE(orders_->Allocate(kSession, 1, 4).ok());
  const LaunchCommand whole =
      orders_->Launch(kSession, 1, 0, {.x = 4}, {}, {BufferArgument{.buffer = 1}, Value(1)});
  for (const auto& [first, count] : {std::pair{0u, 5u}, {4u, 1u}, {2u, 0u}, {3u, 2u}}) {
    LaunchCommand part = whole;
    part.first = first;
    part.count = count;
    EXPECT_EQ(orders_->Run({part}).error.reason(), reason::kBadGrid) << first << " " << count;
  }
  LaunchCommand far = whole;
  far.offset.x = 1 << 20;
  EXPECT_EQ(orders_->Run({far}).error.reason(), reason::kBadGrid);
  EXPECT_EQ(Launch(0, {.x = 1u << 31}, {}, {BufferArgument{.buffer = 1}, Value(1)}).error.reason(),
            reason::kBadGrid);
  EXPECT_EQ(Launch(0, {}, {}, {BufferArgument{.buffer = 1}}).error.reason(),
            reason::kArgumentCount);
  EXPECT_EQ(Launch(0, {}, {}, {}).error.reason(), reason::kArgumentCount);
  EXPECT_EQ(orders_->Read<int>(kSession, 1, 1), std::vector<int>{0});
}

TEST_F(OpenCl, WhatCannotBeCutSaysWhyAndRunsWholeOnly) {
  const ModuleInfo module = Load(
      "#undef get_global_id\n"
      "kernel void put(global int *x) { x[get_global_id(0)] = get_global_size(0); }\n");
  EXPECT_FALSE(module.kernels.at(0).cuttable);
  EXPECT_THAT(module.kernels.at(0).whole_reason, HasSubstr("get_global_id (line 1)"));
  ASSERT_TRUE(orders_->Allocate(kSession, 1, 16).ok());
  LaunchCommand launch =
      orders_->Launch(kSession, 1, 0, {.x = 4}, {}, {BufferArgument{.buffer = 1}});
  EXPECT_EQ(orders_->Run({launch}).outcome, Completion::Outcome::kDone);
  EXPECT_EQ(orders_->Read<int>(kSession, 1, 4), std::vector<int>(4, 4));
  launch.count = 2;
  const Completion refused = orders_->Run({launch});
  EXPECT_EQ(refused.error.reason(), reason::kBadGrid);
  EXPECT_THAT(refused.error.message(), HasSubstr("get_global_id (line 1)"));
}

TEST_F(OpenCl, WhatDoesNotBuildRenamedIsBuiltAsItIs) {
  const ModuleInfo module = Load(
      "int __gpusched_block(float f) { return (int)f; }\n"
      "kernel void put(global int *x) { x[get_local_id(0)] = __gpusched_block(7.5f); }\n");
  EXPECT_THAT(module.kernels.at(0).whole_reason, HasSubstr("does not build"));
  ASSERT_TRUE(orders_->Allocate(kSession, 1, 4).ok());
  EXPECT_EQ(Launch(0, {}, {}, {BufferArgument{.buffer = 1}}).outcome, Completion::Outcome::kDone);
  EXPECT_EQ(orders_->Read<int>(kSession, 1, 1), std::vector<int>{7});
}

TEST_F(OpenCl, ComputingThreadsYieldToThoseThatWait) {
  Load("kernel void put(global int *x, int value) { x[0] = value; }\n");
  ASSERT_TRUE(orders_->Allocate(kSession, 1, 4).ok());
  Launch(0, {}, {}, {BufferArgument{.buffer = 1}, Value(1)});
  int yielding = 0;
  DIR* threads = opendir("/proc/self/task");
  ASSERT_NE(threads, nullptr);
  while (const dirent* entry = readdir(threads)) {
    if (entry->d_name[0] == '.') continue;
    if (getpriority(PRIO_PROCESS, std::stoi(entry->d_name)) >= 10) ++yielding;
  }
  closedir(threads);
  EXPECT_GE(yielding, 3);  // a worker at least, and the two that prepare
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), 0);
}

TEST_F(OpenCl, TheTimesTellTheWorkDone) {
  Load(
      "kernel void spin(global uint *x, uint rounds) {\n"
      "  uint value = x[0] + get_global_id(0);\n"
      "  for (uint i = 0; i < rounds; ++i) value = value * 1664525u + 1013904223u;\n"
      "  x[get_global_id(0)] = value;\n"
      "}\n");
  ASSERT_TRUE(orders_->Allocate(kSession, 1, 256).ok());
  const auto took = [&](std::uint32_t rounds) {
    const Completion done = Launch(0, {}, {}, {BufferArgument{.buffer = 1}, Value(rounds)});
    EXPECT_EQ(done.outcome, Completion::Outcome::kDone);
    return done.ended - done.started;
  };
  took(1);
  // Ten thousand times the work takes longer: the one thing sure on any machine.
  EXPECT_GT(took(10'000'000), took(1'000));
}

TEST(OpenClBackends, SelectsByNameAndListsWhatThereIs) {
  RecordingSink sink;
  const auto found = OpenClOfThisMachine(sink, 0);
  if (found == nullptr) GTEST_SKIP() << "no OpenCL driver on this machine";
  DeviceOptions options;
  options.kind = "auto";
  const auto sinks = [&](std::size_t, const DeviceInfo&) { return &sink; };
  options.select = found->info().uuid;
  const auto by_uuid = OpenDevices(options, sinks);
  ASSERT_TRUE(by_uuid) << by_uuid.status().ToString();
  EXPECT_EQ(by_uuid->front()->info().uuid, found->info().uuid);
  EXPECT_EQ(by_uuid->front()->info().backend, "opencl");
  options.select = "no such device";
  const auto none = OpenDevices(options, sinks);
  EXPECT_EQ(none.status().reason(), reason::kUnknownDevice);
  EXPECT_THAT(none.status().message(), HasSubstr(found->info().uuid));
  options = {.kind = "opencl", .memory_bytes = UINT64_MAX};
  EXPECT_EQ(OpenDevices(options, sinks).status().reason(), reason::kBadConfiguration);
  options = {.kind = "opencl", .cache_dir = "/proc/no/such/place"};
  EXPECT_EQ(OpenDevices(options, sinks).status().reason(), reason::kBadConfiguration);
}

}  // namespace
}  // namespace gpusched::device
