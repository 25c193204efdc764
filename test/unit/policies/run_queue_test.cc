// Eligibility by par, order by key, ties by least recently served.
#include "gpusched/policy/run_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

namespace gpusched {
namespace {

class RunQueueTest : public ::testing::Test {
 protected:
  void Put(std::uint32_t slot, FluidTime eligible, int key, int served = 0) {
    queue_.Reserve(slot);
    queue_.Set({.id = {slot, slot + 1u},
                .eligible = eligible,
                .key = key,
                .last_served = Time(Duration(served))});
  }
  std::uint32_t First() const { return queue_.First()->id.slot; }

  RunQueue<int> queue_;
};

TEST_F(RunQueueTest, OnlyWhoeverParHasPassedIsEligible) {
  Put(0, 10, 1);
  Put(1, 5, 2);
  queue_.Promote(4);
  EXPECT_EQ(queue_.First(), nullptr);
  EXPECT_EQ(queue_.Next()->id.slot, 1u);
  queue_.Promote(5);
  EXPECT_EQ(First(), 1u);
  queue_.Promote(10);
  EXPECT_EQ(First(), 0u);
}

TEST_F(RunQueueTest, TiesGoToTheLeastRecentlyServedThenToTheFirstOpened) {
  Put(0, 0, 1, 30);
  Put(2, 0, 1, 10);
  Put(1, 0, 1, 10);
  queue_.Promote(0);
  EXPECT_EQ(First(), 1u);
  queue_.Remove(1);
  EXPECT_EQ(First(), 2u);
  queue_.Remove(2);
  EXPECT_EQ(First(), 0u);
}

TEST_F(RunQueueTest, WhenParGoesBackNobodyIsChosenWhoIsNotEligibleAnyMore) {
  Put(0, 8, 1);
  Put(1, 3, 2);
  queue_.Promote(10);
  EXPECT_EQ(First(), 0u);
  queue_.Promote(5);
  EXPECT_EQ(First(), 1u);
  queue_.Promote(8);
  EXPECT_EQ(First(), 0u);
}

TEST_F(RunQueueTest, ANewPlaceReplacesTheOld) {
  Put(0, 0, 1);
  Put(1, 0, 2);
  queue_.Promote(0);
  Put(0, 7, 1);
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(First(), 1u);
  EXPECT_EQ(queue_.Next()->id.slot, 0u);
}

TEST_F(RunQueueTest, ChoosesWhatASearchThroughAllWouldChoose) {
  std::mt19937 random(3);
  using Place = std::tuple<int, int, std::uint32_t, FluidTime>;  // key, served, slot, eligible
  std::map<std::uint32_t, Place> model;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint32_t slot = random() % 25;
    if (random() % 4 == 0) {
      queue_.Reserve(slot);
      queue_.Remove(slot);
      model.erase(slot);
    } else {
      const auto eligible = static_cast<FluidTime>(random() % 50);
      const int key = static_cast<int>(random() % 20), served = static_cast<int>(random() % 5);
      Put(slot, eligible, key, served);
      model[slot] = {key, served, slot, eligible};
    }
    const auto par = static_cast<FluidTime>(random() % 60);
    queue_.Promote(par);
    const Place* best = nullptr;
    for (const auto& [s, place] : model) {
      if (std::get<3>(place) <= par && (best == nullptr || place < *best)) best = &place;
    }
    ASSERT_EQ(queue_.First() != nullptr, best != nullptr);
    if (best != nullptr) {
      ASSERT_EQ(First(), std::get<2>(*best));
    }
    ASSERT_EQ(queue_.size(), model.size());
  }
}

}  // namespace
}  // namespace gpusched
