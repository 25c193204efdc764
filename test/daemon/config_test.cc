// The configuration document, read without a daemon.
#include "config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusched::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> Faults(const std::string& text, const Overrides& overrides = {}) {
  std::vector<std::string> faults;
  for (const ConfigFault& fault : Read(text, overrides).faults) faults.push_back(Text(fault));
  return faults;
}

TEST(Configuration, NoneIsAllDefaults) {
  const ReadConfig read = Read(std::nullopt, {});
  EXPECT_THAT(read.faults, IsEmpty());
  EXPECT_EQ(read.config.policy.kind, "round_robin");
  EXPECT_EQ(read.config.drain_timeout, std::chrono::seconds(10));
}

// A file that was truncated before it was written must not take a device's policy away.
TEST(Configuration, AnEmptyOneIsRefused) {
  for (const char* text : {"", "\n", "# version: 1\n", "---\n", "~\n"}) {
    EXPECT_THAT(Faults(text), ElementsAre(HasSubstr("version: is missing"))) << text;
  }
}

TEST(Configuration, OneFileIsOneDocument) {
  EXPECT_THAT(Faults("version: 1\n---\nversion: 1\n"), ElementsAre(HasSubstr("line 3")));
}

TEST(Configuration, EveryKeyIsRead) {
  const ReadConfig read = Read(
      "version: 1\n"
      "listen: {endpoints: ['unix:/a', '127.0.0.1:7000'], insecure: true}\n"
      "admin: {endpoint: 'unix:/b', group: gpu}\n"
      "device: {kind: virtual, count: 3, costs: zero.yaml, memory: 2GiB, preemption_bound: 500us, "
      "cache_dir: /c, select: x}\n"
      "sessions: {max_priority: 5, max_share: 25%, memory: 1MiB, max_memory: 1GB, window_jobs: 8, "
      "window_bytes: 4MiB, max_sessions: 7}\n"
      "drain_timeout: 3s\n"
      "log: {level: debug, file: /d}\n"
      "policy: {kind: weighted_share, slice: 2ms}\n",
      {});
  ASSERT_THAT(read.faults, IsEmpty());
  const Config& config = read.config;
  EXPECT_THAT(config.listen.endpoints, ElementsAre("unix:/a", "127.0.0.1:7000"));
  EXPECT_EQ(config.admin.group, "gpu");
  EXPECT_EQ(config.device.memory, std::uint64_t{2} << 30);
  EXPECT_EQ(config.device.preemption_bound, std::chrono::microseconds(500));
  EXPECT_EQ(config.sessions.max_share, kWholeDevice / 4);
  EXPECT_EQ(config.sessions.max_memory, 1'000'000'000u);
  EXPECT_EQ(config.sessions.window_jobs, 8u);
  EXPECT_EQ(config.drain_timeout, std::chrono::seconds(3));
  EXPECT_EQ(config.log.level, "debug");
  EXPECT_EQ(config.policy.parameters.at("slice"), "2ms");
  EXPECT_EQ(config.policy.parameters.at("window"), "100ms");
}

TEST(Configuration, FaultsComeTogetherWithTheirPlaces) {
  EXPECT_THAT(Faults("version: 2\ndevice: {count: 0}\nfoo: 1\nlog: {level: loud}\nlog: {}\n"),
              ElementsAre(HasSubstr("line 1, column 10"), HasSubstr("line 2, column 17"),
                          HasSubstr("line 3, column 1"), HasSubstr("line 4, column 14"),
                          HasSubstr("given twice")));
}

TEST(Configuration, BrokenYamlIsPlaced) {
  EXPECT_THAT(Faults("version: 1\npolicy: {kind: x\n"), ElementsAre(HasSubstr("line 3")));
  EXPECT_THAT(Faults("- a\n- b\n"), ElementsAre(HasSubstr("must be a map")));
  EXPECT_THAT(Faults("log: {level: info}\n"), ElementsAre(HasSubstr("version")));
}

TEST(Configuration, FlagsWin) {
  Overrides flags;
  flags.device = "virtual";
  flags.devices = 4;
  flags.policy = "weighted_share,slice=3ms";
  flags.preemption_bound = "2ms";
  const ReadConfig read = Read("version: 1\npolicy: {kind: round_robin}\n", flags);
  ASSERT_THAT(read.faults, IsEmpty());
  EXPECT_EQ(read.config.device.count, 4);
  EXPECT_EQ(read.config.policy.canonical, "slice=3ms,window=100ms");
  EXPECT_EQ(read.config.device.preemption_bound, std::chrono::milliseconds(2));
  flags.policy = "fifo";
  flags.devices = 40;
  EXPECT_THAT(Read(std::nullopt, flags).faults, SizeIs(2));
}

TEST(Configuration, KeysThatNeedARestartAreNamed) {
  const Config running = Read("version: 1\n", {}).config;
  const Config next =
      Read("version: 1\ndevice: {count: 2, preemption_bound: 2ms}\nlog: {file: /x, level: error}\n",
           {})
          .config;
  EXPECT_THAT(NeedsRestart(running, next), ElementsAre("device.count", "log.file"));
  EXPECT_THAT(NeedsRestart(running, running), IsEmpty());
}

TEST(Configuration, TheTableNamesEveryKey) {
  for (const char* key : {"version", "listen.endpoints", "policy.kind", "drain_timeout"}) {
    EXPECT_THAT(KeyTable(), HasSubstr(key));
  }
}

}  // namespace
}  // namespace gpusched::daemon
