// The heap over slots against a plain map.
#include "gpusched/policy/indexed_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace gpusched {
namespace {

TEST(IndexedHeapTest, TheLeastKeyIsOnTopWhateverIsSetAndRemoved) {
  std::mt19937 random(7);
  IndexedHeap<int> heap;
  std::map<std::uint32_t, int> model;
  const auto by_key = [](const auto& a, const auto& b) { return a.second < b.second; };
  for (int i = 0; i < 50'000; ++i) {
    const std::uint32_t slot = random() % 40;
    if (random() % 3 == 0) {
      heap.Remove(slot);
      model.erase(slot);
    } else {
      const int key = static_cast<int>(random() % 100);
      heap.Set(slot, key);
      model[slot] = key;
    }
    ASSERT_EQ(heap.size(), model.size());
    ASSERT_EQ(heap.Contains(slot), model.contains(slot));
    if (model.empty()) continue;
    ASSERT_EQ(heap.top(), std::min_element(model.begin(), model.end(), by_key)->second);
    ASSERT_EQ(heap.KeyOf(heap.top_slot()), model.at(heap.top_slot()));
  }
}

TEST(IndexedHeapTest, TheSecondIsWhatWouldBeOnTopWithoutTheTop) {
  std::mt19937 random(8);
  for (std::uint32_t size = 2; size < 20; ++size) {
    IndexedHeap<std::uint32_t> heap;
    for (std::uint32_t slot = 0; slot < size; ++slot) heap.Set(slot, random());
    const std::uint32_t second = heap.second_slot();
    heap.Remove(heap.top_slot());
    EXPECT_EQ(heap.top_slot(), second);
  }
}

TEST(IndexedHeapTest, ClearForgetsKeysAndKeepsRoom) {
  IndexedHeap<int> heap;
  heap.Set(3, 1);
  heap.Clear();
  EXPECT_TRUE(heap.empty());
  EXPECT_FALSE(heap.Contains(3));
  heap.Set(3, 2);
  EXPECT_EQ(heap.top(), 2);
}

TEST(IndexedHeapTest, AnotherOrderIsPossible) {
  IndexedHeap<int, std::greater<>> heap;
  heap.Set(0, 1);
  heap.Set(1, 5);
  heap.Set(2, 3);
  EXPECT_EQ(heap.top_slot(), 1u);
}

}  // namespace
}  // namespace gpusched
