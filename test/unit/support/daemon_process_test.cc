// A daemon that cannot start is an error with the daemon's own words, at once.
#include "support/daemon_process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace gpusched::test {
namespace {

// A program that says something and ends.
std::string WriteScript(const std::string& name, const std::string& body) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  chmod(path.c_str(), 0700);
  return path;
}

TEST(DaemonProcess, SaysWhatADaemonSaidThatEndedTooEarly) {
  DaemonOptions options;
  options.binary = WriteScript("early_end.sh", "echo no such device; exit 3");
  const auto daemon = DaemonProcess::Start(options);
  ASSERT_FALSE(daemon.ok());
  EXPECT_NE(daemon.status().message().find("status 3"), std::string::npos);
  EXPECT_NE(daemon.status().message().find("no such device"), std::string::npos);
}

TEST(DaemonProcess, GivesItsFlagsFileAndEnvironmentOn) {
  DaemonOptions options;
  options.yaml = "version: 1\n";
  options.flags = {"--policy=round_robin"};
  options.environment = {{"GPUSCHED_TEST_WORD", "seen"}};
  options.binary =
      WriteScript("echo.sh", "echo \"$GPUSCHED_TEST_WORD\" \"$@\"; cat \"${1#--config=}\"; exit 1");
  const auto daemon = DaemonProcess::Start(options);
  ASSERT_FALSE(daemon.ok());
  const std::string& message = daemon.status().message();
  EXPECT_NE(message.find("seen --config="), std::string::npos) << message;
  EXPECT_NE(message.find("gpusched.sock --admin=unix:"), std::string::npos) << message;
  EXPECT_NE(message.find("--policy=round_robin"), std::string::npos) << message;
  EXPECT_NE(message.find("version: 1"), std::string::npos) << message;
}

TEST(DaemonProcess, SaysThatADaemonIsNotReady) {
  DaemonOptions options;
  options.binary = WriteScript("never_ready.sh", "exec tail -f /dev/null");
  options.ready_within = std::chrono::milliseconds(50);
  const auto daemon = DaemonProcess::Start(options);
  ASSERT_FALSE(daemon.ok());
  EXPECT_NE(daemon.status().message().find("not ready after 50 ms"), std::string::npos);
}

TEST(DaemonProcess, SaysThatThereIsNoBinary) {
  DaemonOptions options;
  options.binary = "/no/such/gpuschedd";
  const auto daemon = DaemonProcess::Start(options);
  ASSERT_FALSE(daemon.ok());
  EXPECT_NE(daemon.status().message().find("cannot execute"), std::string::npos);
}

}  // namespace
}  // namespace gpusched::test
