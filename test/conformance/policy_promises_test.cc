// What each built-in policy promises, over the real scheduler in virtual time; bounds from the
// headers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "round_robin.h"
#include "support/virtual_driver.h"
#include "weighted_share.h"

namespace gpusched::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

VirtualDriver::Options Under(const std::string& policy, const std::string& parameters = "") {
  VirtualDriver::Options options;
  options.policy = policy;
  options.parameters = parameters;
  options.lateness = microseconds(60);
  return options;
}

Work Launches(Duration takes, bool cuttable = true) {
  return {.per_block = takes / 1'000, .blocks = 1'000, .cuttable = cuttable};
}

Duration Within(const SliceReport& slice, Time from, Time to) {
  const Time begin = std::max(from, slice.ended - slice.charged), end = std::min(to, slice.ended);
  return std::max(Duration(0), end - begin);
}

TEST(PolicyPromisesTest, RoundRobinKeepsUncuttableWorkWithinItsBound) {
  VirtualDriver::Options options = Under("round_robin");
  options.costs.outlier_ppb = 0;
  VirtualDriver driver(options);
  const SessionId tiny = driver.Open(), huge = driver.Open();
  driver.KeepBusy(tiny, Launches(microseconds(200), false), 4);
  driver.KeepBusy(huge, Launches(milliseconds(20), false));
  const Time from = driver.now();
  driver.RunFor(seconds(6));
  // 20 ms with the device's noise of 5 %, three times that at most, and its costs.
  const Duration bound = RoundRobin::FurthestApart(2, milliseconds(1), milliseconds(24));
  for (Time begin = from; begin < from + seconds(4); begin += milliseconds(7)) {
    Duration apart{0};
    for (const SliceReport& slice : driver.slices()) {
      const Duration part = Within(slice, begin, begin + seconds(2));
      apart += slice.session == tiny ? part : -part;
    }
    ASSERT_LE(std::abs(apart.count()), bound.count());
  }
}

TEST(PolicyPromisesTest, WeightedShareKeepsItsBoundInEveryWindowOfATenthOfASecond) {
  VirtualDriver::Options options = Under("weighted_share");
  options.costs.outlier_ppb = 0;
  VirtualDriver driver(options);
  Share heavy, light;
  heavy.weight = 70;
  light.weight = 30;
  const SessionId a = driver.Open(heavy), b = driver.Open(light);
  driver.KeepBusy(a, Launches(milliseconds(50)));
  driver.KeepBusy(b, Launches(milliseconds(50)));
  const Time from = driver.now();
  driver.RunFor(seconds(3));
  const double window = 0.1;
  for (const SliceReport& start : driver.slices()) {
    if (start.started > from + seconds(2)) break;
    const double share = driver.ShareOf(a, start.started, start.started + milliseconds(100));
    const Duration bound = WeightedShare::FurthestOff(milliseconds(1) + microseconds(500));
    ASSERT_NEAR(share, 0.7, std::chrono::duration<double>(bound).count() / window);
  }
}

TEST(PolicyPromisesTest, EightLowerSessionsAreRescuedInTimeAndWithinTheBackgroundShare) {
  VirtualDriver driver(Under("preemptive_priority", "starvation_bound=100ms,background_share=10%"));
  Share high;
  high.priority = 10;
  driver.KeepBusy(driver.Open(high), Launches(milliseconds(5)));
  std::vector<SessionId> lower;
  for (int i = 0; i < 8; ++i) {
    lower.push_back(driver.Open());
    driver.KeepBusy(lower.back(), Launches(milliseconds(50)));
  }
  driver.RunFor(seconds(10));
  // 100 ms, eight rescues of 1 ms at a tenth of the device and a little more for their costs.
  for (const SessionId id : lower) {
    EXPECT_LE(driver.scheduler().Find(driver.now(), id)->longest_wait, milliseconds(200));
  }
  for (const SliceReport& first : driver.slices()) {
    if (!first.rescue) continue;
    Duration rescued{0};
    for (const SliceReport& slice : driver.slices()) {
      if (slice.rescue) rescued += Within(slice, first.started, first.started + seconds(1));
    }
    ASSERT_LE(rescued, milliseconds(102));
  }
  EXPECT_TRUE(driver.ejections().empty());
}

TEST(PolicyPromisesTest, UnderPriorityRequestsAreOnTimeAndTheUpdateGetsTheRest) {
  VirtualDriver driver(Under("preemptive_priority"));
  Share request, update;
  request.priority = 10;
  request.latency_target = milliseconds(100);
  const SessionId requests = driver.Open(request), updates = driver.Open(update);
  driver.KeepBusy(updates, Launches(milliseconds(50)));
  driver.RunFor(milliseconds(200));
  std::mt19937 random(11);
  std::exponential_distribution<double> gap(75.0);
  const Time from = driver.now();
  int submitted = 0;
  for (double at = gap(random); at < 20; at += gap(random), ++submitted) {
    driver.After(Duration(static_cast<std::int64_t>(at * 1e9)), [&driver, requests] {
      driver.Submit(requests, Launches(milliseconds(8)), 0, milliseconds(100));
    });
  }
  driver.RunFor(seconds(21));
  int on_time = 0;
  for (const JobRecord& job : driver.JobsOf(requests)) on_time += job.ended <= job.deadline;
  EXPECT_GE(on_time, submitted * 99 / 100);
  const double rest = 1 - driver.ShareOf(requests, from, driver.now());
  EXPECT_GE(driver.ShareOf(updates, from, driver.now()), 0.9 * rest);
}

TEST(PolicyPromisesTest, AnOldClaimShutsNobodyOut) {
  for (const char* policy : {"round_robin", "weighted_share"}) {
    VirtualDriver driver(Under(policy));
    const SessionId busy = driver.Open(), small = driver.Open();
    driver.KeepBusy(busy, Launches(milliseconds(50)));
    // One small job at a time waits for the other's slice again and again, and is owed ever more.
    driver.KeepBusy(small, Launches(microseconds(100)), 1);
    driver.RunFor(seconds(10));
    driver.StopWork(small);
    driver.RunFor(milliseconds(50));
    driver.KeepBusy(small, Launches(milliseconds(50)));
    const Time from = driver.now();
    driver.RunFor(seconds(1));
    // Half, less a tenth of a second that is settled at once, less a few slices.
    EXPECT_GE(driver.ShareOf(busy, from, driver.now()), 0.395) << policy;
    EXPECT_TRUE(driver.ejections().empty()) << policy;
  }
}

}  // namespace
}  // namespace gpusched::testing
