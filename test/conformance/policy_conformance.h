// What every policy must satisfy, over the real scheduler in virtual time.
//
// Include it in one file of a test, and name the policies:
//   INSTANTIATE_TEST_SUITE_P(Mine, PolicyConformance, ::testing::Values(
//       PolicyUnderTest{"mine", [] { return std::make_unique<Mine>(); }}),
//       PolicyUnderTest::NameOf);
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "conformance/audited_policy.h"
#include "core/priority_class.h"
#include "support/virtual_driver.h"

namespace gpusched::testing {

struct PolicyUnderTest {
  std::string name;
  std::function<std::unique_ptr<Policy>()> make;

  static std::string NameOf(const ::testing::TestParamInfo<PolicyUnderTest>& info) {
    return info.param.name;
  }
  friend void PrintTo(const PolicyUnderTest& policy, std::ostream* out) { *out << policy.name; }
};

class PolicyConformance : public ::testing::TestWithParam<PolicyUnderTest> {
 protected:
  using Milliseconds = std::chrono::milliseconds;
  using Microseconds = std::chrono::microseconds;
  using Seconds = std::chrono::seconds;

  // The longest command any story runs, ten times over for the rare one that takes so long, and
  // twice for the one before.
  static constexpr Duration kLongestCommand = Milliseconds(12);
  static constexpr Duration kBeyondHelp = 20 * kLongestCommand;

  std::unique_ptr<Policy> Make() {
    return std::make_unique<AuditedPolicy>(GetParam().make(), &faults_, kBeyondHelp);
  }
  std::unique_ptr<VirtualDriver> Drive(std::uint32_t classes = 1) {
    VirtualDriver::Options options;
    options.policy = GetParam().name;
    options.lateness = Microseconds(30);
    options.traits.priority_classes = classes;
    return std::make_unique<VirtualDriver>(options, Make());
  }
  void ExpectNoFault(const VirtualDriver& driver) {
    EXPECT_THAT(faults_, ::testing::IsEmpty());
    for (const core::PolicyEjected& ejection : driver.ejections()) {
      ADD_FAILURE() << "ejected: " << ejection.why;
    }
  }

  static Work Busy(Duration job, bool cuttable = true) {
    return {.per_block = job / 100, .blocks = 100, .cuttable = cuttable};
  }
  // Shares of all kinds.
  static Share ShareOf(int number) {
    Share share;
    share.weight = 1 + number * 61 % 400;
    share.priority = number % 4 * 5 - 5;
    if (number % 3 == 1) share.latency_target = Milliseconds(20 + number * 10);
    if (number % 5 == 2) share.min = kWholeDevice / 20;
    if (number % 7 == 3) share.max = kWholeDevice / 8;
    return share;
  }

  std::vector<std::string> faults_;
};

TEST_P(PolicyConformance, ServesEveryoneWithinTheWaitItDeclares) {
  const auto driver = Drive();
  std::vector<SessionId> all;
  for (int i = 0; i < 14; ++i) {
    all.push_back(driver->Open(ShareOf(i)));
    driver->KeepBusy(all.back(), Busy(Microseconds(400) * (1 + i * i % 30), i % 4 != 3));
  }
  driver->RunFor(Seconds(6));
  ExpectNoFault(*driver);
}

TEST_P(PolicyConformance, NeverLeavesTheDeviceIdleWithWorkWaiting) {
  const auto driver = Drive();
  for (int i = 0; i < 5; ++i) {
    Share share = ShareOf(i);
    share.max = kWholeDevice;
    driver->KeepBusy(driver->Open(share), Busy(Milliseconds(2 + 3 * i)));
  }
  driver->RunFor(Milliseconds(200));  // every kernel is known by then
  const Duration before = driver->scheduler().device().charged;
  driver->RunFor(Seconds(2));
  EXPECT_GE(driver->scheduler().device().charged - before, Milliseconds(1'980));
  ExpectNoFault(*driver);
}

TEST_P(PolicyConformance, NothingIsLostHoweverSessionsComeAndGo) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto driver = Drive(seed % 4 != 0 ? 1 : core::kEachPriorityItsOwn);
    std::vector<SessionId> open;
    std::size_t submitted = 0;
    std::vector<std::pair<SessionId, std::uint64_t>> jobs;
    for (int step = 0; step < 1'500; ++step) {
      const auto any = [&] { return open[random() % open.size()]; };
      switch (open.empty() ? 0 : random() % 16) {
        case 0:
          if (open.size() < 24)
            open.push_back(driver->Open(ShareOf(static_cast<int>(random() % 50))));
          break;
        case 1: {
          const std::size_t who = random() % open.size();
          driver->Close(open[who]);
          open.erase(open.begin() + static_cast<std::ptrdiff_t>(who));
          break;
        }
        case 2: driver->Pause(any()); break;
        case 3: driver->Resume(any()); break;
        case 4: driver->Change(any(), ShareOf(static_cast<int>(random() % 50))); break;
        case 5:
          if (!jobs.empty()) {
            const auto& [session, job] = jobs[random() % jobs.size()];
            driver->Cancel(session, job);
          }
          break;
        case 6: driver->SetPolicy(Make()); break;
        default: {
          const SessionId who = any();
          const Duration takes = Microseconds(50 + random() % 6'000);
          jobs.emplace_back(who, driver->Submit(who, Busy(takes, random() % 3 != 0),
                                                static_cast<std::uint32_t>(random() % 3),
                                                Milliseconds(5 + random() % 100)));
          ++submitted;
          break;
        }
      }
      driver->RunFor(Microseconds(random() % 4'000));
    }
    for (const SessionId id : open) driver->Resume(id);
    driver->RunUntilIdle();
    EXPECT_EQ(driver->outstanding_jobs(), 0u);
    EXPECT_EQ(driver->jobs().size() + driver->refused(), submitted);
    std::map<std::uint64_t, int> times;
    for (const JobRecord& job : driver->jobs()) EXPECT_EQ(++times[job.id], 1) << "job " << job.id;
    ExpectNoFault(*driver);
    faults_.clear();
  }
}

TEST_P(PolicyConformance, AJobThatWaitsAloneRunsAtOnce) {
  const auto driver = Drive();
  const SessionId id = driver->Open();
  driver->Submit(id, Busy(Milliseconds(3)));
  driver->RunUntilIdle();
  const std::uint64_t job = driver->Submit(id, Busy(Milliseconds(3)));
  driver->RunUntilIdle();
  ASSERT_EQ(driver->jobs().size(), 2u);
  EXPECT_EQ(driver->jobs()[1].id, job);
  EXPECT_LE(driver->jobs()[1].started - driver->jobs()[1].arrived, Microseconds(30));
  ExpectNoFault(*driver);
}

TEST_P(PolicyConformance, AccountsSurviveASwapToTheNanosecond) {
  const auto driver = Drive();
  std::vector<SessionId> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(driver->Open(ShareOf(i)));
    driver->KeepBusy(all.back(), Busy(Milliseconds(1 + 4 * i), i != 5));
  }
  for (int swap = 0; swap < 100; ++swap) {
    driver->RunFor(Milliseconds(11) + Microseconds(137 * swap));
    // Between two facts, without a decision. The first swap charges what slices in progress have
    // had so far; a second one at the same instant finds nothing left to charge.
    core::Scheduler& scheduler = driver->scheduler();
    const auto replace = [&](int generation) {
      const core::PolicySpec spec{.kind = GetParam().name,
                                  .parameters = "",
                                  .generation = static_cast<std::uint64_t>(generation),
                                  .source = "test"};
      scheduler.Handle(driver->now(), core::PolicyChanged{spec, Make()});
    };
    replace(2 * swap + 2);
    const auto before = scheduler.Sessions(driver->now());
    replace(2 * swap + 3);
    const auto after = scheduler.Sessions(driver->now());
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_EQ(after[i].account.charged, before[i].account.charged);
      // To the rounding of the fluid clocks.
      EXPECT_LE(std::abs((after[i].account.lag - before[i].account.lag).count()), 2);
    }
  }
  ExpectNoFault(*driver);
}

TEST_P(PolicyConformance, EqualRunsDecideEqually) {
  const auto trail = [this] {
    const auto driver = Drive();
    for (int i = 0; i < 9; ++i) {
      driver->KeepBusy(driver->Open(ShareOf(i)), Busy(Microseconds(300 + 900 * i), i % 3 != 1));
    }
    driver->RunFor(Seconds(1));
    std::vector<std::pair<std::uint64_t, Time>> commands;
    for (const auto& command : driver->executed())
      commands.emplace_back(command.job, command.ended);
    return commands;
  };
  EXPECT_EQ(trail(), trail());
}

}  // namespace gpusched::testing
