// What operators do while everything runs.
#include <sys/stat.h>
#include <csignal>
#include <fstream>
#include <sstream>

#include "fixture.h"

namespace gpusched::test {
namespace {

constexpr char kBase[] = "version: 1\ndevice: {kind: virtual}\n";

class Operators : public WithDaemon {};

TEST_F(Operators, SwapsUnderLoadLoseNothing) {
  Start();
  Session first = Open({.share = {.weight = 300}}), second = Open({.share = {.priority = 3}});
  const Module one = Load(first), two = Load(second);
  std::vector<Submission> jobs;
  const char* const kinds[] = {"weighted_share", "preemptive_priority", "round_robin"};
  for (int i = 0; i < 60; ++i) {
    jobs.push_back(Take(first.Submit(Job().Launch(one.kernel("long"), {3}, {1}))));
    jobs.push_back(Take(second.Submit(Job().Launch(two.kernel("quick"), {200}, {1}))));
    const admin::Policy policy = Take(admin_->SetPolicy({.kind = kinds[i % 3]}));
    EXPECT_EQ(policy.kind, kinds[i % 3]);
    EXPECT_EQ(policy.generation, static_cast<std::uint64_t>(i) + 2);
  }
  for (Submission& job : jobs) EXPECT_EQ(Take(job.Wait(kSoon)).outcome, Outcome::kDone);
  for (const admin::Session& session : Take(admin_->Sessions())) EXPECT_EQ(session.jobs_done, 60u);
}

TEST_F(Operators, EverythingThatIsWrongWithAPolicyIsSaidAtOnce) {
  Start();
  admin::FieldErrors fields;
  const Status status =
      admin_
          ->SetPolicy({.kind = "weighted_share",
                       .parameters = {{"slice", "1h"}, {"window", "x"}, {"y", "1"}}},
                      &fields)
          .status();
  EXPECT_THAT(status, Refused("BAD_PARAMETER"));
  EXPECT_EQ(fields.size(), 3u);
  EXPECT_THAT(admin_->ValidatePolicy("fifo", {}).status(), Refused("UNKNOWN_POLICY"));
  EXPECT_EQ(Take(admin_->GetPolicy()).generation, 1u);
}

// gRPC's own bound on trailers is 8 KiB.
TEST_F(Operators, HundredsOfFaultsAreSaidAtOnceAndWithoutEndInPart) {
  Start({.yaml = kBase, .flags = {}});
  const auto write = [&](int unknown) {
    std::ofstream file(daemon_->config_path());
    file << kBase;
    for (int i = 0; i < unknown; ++i) file << "key_number_" << i << ": 1\n";
  };
  write(400);
  admin::FieldErrors fields;
  EXPECT_THAT(admin_->Reload(&fields).status(), Refused("BAD_CONFIGURATION"));
  ASSERT_EQ(fields.size(), 400u);
  EXPECT_EQ(fields[399].line, 402);
  EXPECT_THAT(fields[0].message, testing::HasSubstr("drain_timeout"));  // what keys there are
  EXPECT_THAT(fields[1].message, testing::Not(testing::HasSubstr("drain_timeout")));
  fields.clear();
  write(20'000);
  EXPECT_THAT(admin_->Reload(&fields).status(), Refused("BAD_CONFIGURATION"));
  EXPECT_GT(fields.size(), 400u);
  EXPECT_LT(fields.size(), 20'000u);
  EXPECT_THAT(fields.back().message, testing::HasSubstr("more"));

  fields.clear();
  admin::Parameters unknown;
  for (int i = 0; i < 60; ++i) unknown["parameter_" + std::to_string(i)] = "1";
  EXPECT_THAT(
      admin_->SetPolicy({.kind = "weighted_share", .parameters = unknown}, &fields).status(),
      Refused("BAD_PARAMETER"));
  EXPECT_EQ(fields.size(), 60u);
  const Status status = admin_->Kill(std::string(1 << 20, 'x')).status();
  EXPECT_THAT(status, Refused("UNKNOWN_SESSION"));
  EXPECT_LT(status.message().size(), 20'000u);
  // Lines of the log are for people.
  std::istringstream log(daemon_->Log());
  for (std::string line; std::getline(log, line);) EXPECT_LT(line.size(), 10'000u);
}

TEST_F(Operators, ANameThatMeansSeveralIsNotGuessed) {
  Start();
  Session first = Open({.name = "a"});
  ASSERT_EQ(first.id(), 1u);
  EXPECT_THAT(admin_->Pause("01").status(), Refused("UNKNOWN_SESSION"));
  Session second = Open({.name = "1"});
  EXPECT_THAT(admin_->Kill("1").status(), Refused("AMBIGUOUS_NAME"));
  EXPECT_EQ(Take(admin_->Pause("id:1")).at(0).name, "a");
  std::vector<Session> many;
  for (int i = 0; i < 300; ++i) many.push_back(Open({.name = "same", .memory = 4096}));
  const Status status = admin_->Kill("same").status();
  EXPECT_THAT(status, Refused("AMBIGUOUS_NAME"));
  EXPECT_THAT(status.message(), testing::StartsWith("300 sessions"));
  EXPECT_LT(status.message().size(), 200u);
}

TEST_F(Operators, AnOldEtagIsRefused) {
  Start();
  const std::string etag = Take(admin_->GetPolicy()).etag;
  Take(admin_->SetPolicy({.kind = "weighted_share", .etag = etag}));
  EXPECT_THAT(admin_->SetPolicy({.kind = "round_robin", .etag = etag}).status(),
              Refused("ETAG_MISMATCH"));
}

TEST_F(Operators, ParametersOfTheKindInForceChangeAlone) {
  Start();
  Take(admin_->SetPolicy({.kind = "weighted_share", .parameters = {{"window", "200ms"}}}));
  const admin::Policy policy = Take(admin_->SetPolicy({.parameters = {{"slice", "2ms"}}}));
  EXPECT_EQ(policy.kind, "weighted_share");
  EXPECT_EQ(policy.parameters.at("window"), "200ms");
  EXPECT_EQ(policy.parameters.at("slice"), "2ms");
}

TEST_F(Operators, APolicyRollsBackAndExpires) {
  Start();
  Take(admin_->SetPolicy({.kind = "weighted_share"}));
  const admin::Policy back = Take(admin_->RollBackPolicy());
  EXPECT_EQ(back.kind, "round_robin");
  EXPECT_EQ(back.generation, 3u);
  EXPECT_THAT(admin_->RollBackPolicy(99).status(), Refused("UNKNOWN_GENERATION"));
  const admin::Policy brief =
      Take(admin_->SetPolicy({.kind = "preemptive_priority", .for_time = 50ms}));
  EXPECT_GT(brief.expires_unix_ns, brief.since_unix_ns);
  EXPECT_TRUE(Eventually([&] { return Take(admin_->GetPolicy()).kind == "round_robin"; }));
  const std::vector<admin::Policy> history = Take(admin_->PolicyHistory());
  EXPECT_EQ(history.size(), 5u);
  EXPECT_THAT(history.front().source, testing::HasSubstr("expiry"));
}

TEST_F(Operators, AnExpiryWithinAnotherLeavesTheOuterOneItsTime) {
  Start();
  Take(admin_->SetPolicy({.kind = "round_robin", .parameters = {{"slice", "2ms"}}}));
  const admin::Policy outer =
      Take(admin_->SetPolicy({.kind = "preemptive_priority", .for_time = 1500ms}));
  Take(admin_->SetPolicy({.kind = "weighted_share", .for_time = 50ms}));
  EXPECT_TRUE(Eventually([&] { return Take(admin_->GetPolicy()).kind != "weighted_share"; }));
  const auto now = [&] { return Take(admin_->GetPolicy()); };
  // On a slow machine the outer one may be over, too.
  if (const admin::Policy then = now(); then.kind == "preemptive_priority") {
    EXPECT_EQ(then.expires_unix_ns, outer.expires_unix_ns);
  }
  EXPECT_TRUE(Eventually([&] { return now().kind == "round_robin"; }));
  EXPECT_EQ(now().parameters.at("slice"), "2ms");
  EXPECT_EQ(now().expires_unix_ns, 0);

  // The inner one ends last: there is nothing left of the outer one to go back to.
  Take(admin_->SetPolicy({.kind = "preemptive_priority", .for_time = 50ms}));
  Take(admin_->SetPolicy({.kind = "weighted_share", .for_time = 200ms}));
  EXPECT_TRUE(Eventually([&] { return now().kind != "weighted_share"; }));
  EXPECT_EQ(now().kind, "round_robin");
}

TEST_F(Operators, AParameterChangedForAWhileEndsWithItsPolicy) {
  Start();
  const admin::Policy brief =
      Take(admin_->SetPolicy({.kind = "weighted_share", .for_time = 300ms}));
  const admin::Policy changed = Take(admin_->SetPolicy({.parameters = {{"window", "200ms"}}}));
  EXPECT_EQ(changed.expires_unix_ns, brief.expires_unix_ns);
  EXPECT_TRUE(Eventually([&] { return Take(admin_->GetPolicy()).kind == "round_robin"; }));
}

TEST_F(Operators, SlicesAndSnapshotsAreFollowed) {
  Start();
  auto slices = Take(admin_->WatchSlices());
  auto snapshots = Take(admin_->Watch(50ms));
  Session session = Open();
  const Module module = Load(session);
  Submission job = Take(session.Submit(Job().Launch(module.kernel("long"), {50}, {1})));
  const Duration charged = Take(job.Wait(kSoon)).charged;
  Duration seen{0};
  while (seen < charged) {
    const admin::SliceBatch batch = Take(slices->Next());
    EXPECT_EQ(batch.dropped, 0u);
    for (const admin::Slice& slice : batch.slices) {
      EXPECT_EQ(slice.session, session.id());
      seen += slice.charged;
    }
  }
  EXPECT_EQ(seen, charged);
  bool shown = false;
  while (!shown) shown = !Take(snapshots->Next()).sessions.empty();
  slices->Stop();
  snapshots->Stop();
}

void Replace(const std::string& path, const std::string& text) {
  std::ofstream(path + ".new") << text;
  ASSERT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
}

TEST_F(Operators, AChangedFileAppliesAndABrokenOneChangesNothing) {
  Start({.yaml = std::string(kBase) + "policy: {kind: round_robin}\n", .flags = {}});
  Replace(daemon_->config_path(),
          std::string(kBase) + "policy: {kind: weighted_share, slice: 2ms}\n");
  EXPECT_TRUE(Eventually([&] { return Take(admin_->GetPolicy()).kind == "weighted_share"; }));
  Replace(daemon_->config_path(), std::string(kBase) + "policy: {kind: weighted_share\n");
  EXPECT_TRUE(daemon_->WaitForLog("line 4", kSoon));
  admin::FieldErrors fields;
  EXPECT_THAT(admin_->Reload(&fields).status(), Refused("BAD_CONFIGURATION"));
  ASSERT_EQ(fields.size(), 1u);
  EXPECT_EQ(fields[0].line, 4);
  EXPECT_EQ(Take(admin_->GetPolicy()).kind, "weighted_share");
}

// What editors, full disks and slips of the hand leave in a file's place.
TEST_F(Operators, WhatHoldsNoConfigurationChangesNothing) {
  Start({.yaml = std::string(kBase) + "policy: {kind: weighted_share}\n", .flags = {}});
  const std::string path = daemon_->config_path();
  const auto refused = [&](const char* what) {
    EXPECT_THAT(admin_->Reload().status(), Refused("BAD_CONFIGURATION")) << what;
    EXPECT_EQ(Take(admin_->GetPolicy()).generation, 1u) << what;
  };
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_TRUE(daemon_->WaitForLog("version: is missing", kSoon));  // by the watch
  refused("empty");
  std::ofstream(path) << "# nothing yet\n";
  refused("only a comment");
  ASSERT_EQ(std::remove(path.c_str()), 0);
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  refused("a folder");
  ASSERT_EQ(std::remove(path.c_str()), 0);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  refused("a FIFO");
  daemon_->Kill(SIGTERM);
  EXPECT_EQ(daemon_->Wait(kSoon), 0);
}

TEST_F(Operators, AnOperatorsPolicyStaysUntilTheFileChanges) {
  Start({.yaml = std::string(kBase) + "policy: {kind: round_robin}\n", .flags = {}});
  EXPECT_FALSE(Take(admin_->GetPolicy()).file_differs);
  Take(admin_->SetPolicy({.kind = "preemptive_priority"}));
  EXPECT_TRUE(Take(admin_->GetPolicy()).file_differs);
  // The same content written again is no change.
  Replace(daemon_->config_path(), std::string(kBase) + "policy: {kind: round_robin}\n");
  EXPECT_EQ(Take(admin_->GetPolicy()).kind, "preemptive_priority");
  daemon_->Kill(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return Take(admin_->GetPolicy()).kind == "round_robin"; }));
}

TEST_F(Operators, ASwappedLinkIsAChange) {
  const auto other = StartDaemon();  // only for its folder, which goes with it
  const std::string folder = other->folder();
  for (const char* version : {"/one", "/two"}) mkdir((folder + version).c_str(), 0700);
  std::ofstream(folder + "/one/gpuschedd.yaml") << kBase << "policy: {kind: round_robin}\n";
  std::ofstream(folder + "/two/gpuschedd.yaml") << kBase << "policy: {kind: weighted_share}\n";
  ASSERT_EQ(symlink("one", (folder + "/current").c_str()), 0);
  Start({.flags = {"--config=" + folder + "/current/gpuschedd.yaml"}});
  ASSERT_EQ(symlink("two", (folder + "/next").c_str()), 0);
  ASSERT_EQ(std::rename((folder + "/next").c_str(), (folder + "/current").c_str()), 0);
  EXPECT_TRUE(Eventually([&] { return Take(admin_->GetPolicy()).kind == "weighted_share"; }));
}

TEST_F(Operators, LiveKeysApplyAndOthersAreNamed) {
  Start({.yaml = kBase, .flags = {}});
  Replace(daemon_->config_path(),
          "version: 1\ndevice: {kind: virtual, count: 2, preemption_bound: 500us}\n"
          "sessions: {max_priority: 3}\n");
  ASSERT_TRUE(daemon_->WaitForLog("device.count", kSoon));
  const admin::Reloaded reloaded = Take(admin_->Reload());
  EXPECT_THAT(reloaded.needs_restart, testing::ElementsAre("device.count"));
  EXPECT_EQ(Take(admin_->Devices()).at(0).preemption_bound, 500us);
  EXPECT_THAT(client_->OpenSession({.share = {.priority = 4}}).status(),
              Refused("ABOVE_CONFIGURED_CAP"));
}

TEST_F(Operators, TheAdminSocketIsTheOwnersAlone) {
  Start();
  struct stat info {};
  ASSERT_EQ(stat((daemon_->folder() + "/admin.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace gpusched::test
