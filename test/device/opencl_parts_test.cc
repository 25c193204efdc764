// Parts of the OpenCL device that need no driver: the arena, and the map between clocks.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "device/opencl/arena.h"
#include "device/opencl/clock_map.h"
#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

Time At(std::int64_t ns) { return Time(Duration(ns)); }

// Blocks the file takes, in 512-byte units as stat counts them.
std::int64_t Blocks(int descriptor) {
  struct stat facts {};
  fstat(descriptor, &facts);
  return facts.st_blocks;
}

TEST(Arena, ASecondMappingOfItsFileSeesTheBytes) {
  const auto arena = Arena::Make("test");
  ASSERT_TRUE(arena) << arena.status().ToString();
  const auto first = (*arena)->Map(10);
  const auto second = (*arena)->Map(5'000);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_NE((*first)->offset(), (*second)->offset());
  std::memset((*second)->data(), 0x77, 5'000);
  auto* other = static_cast<unsigned char*>(
      mmap(nullptr, 5'000, PROT_READ, MAP_SHARED, (*arena)->descriptor(), (*second)->offset()));
  ASSERT_NE(other, MAP_FAILED);
  EXPECT_TRUE(std::all_of(other, other + 5'000, [](unsigned char byte) { return byte == 0x77; }));
  munmap(other, 5'000);
}

TEST(Arena, TakesNoMemoryUntilWrittenAndGivesItBack) {
  const auto arena = Arena::Make("test");
  ASSERT_TRUE(arena);
  auto large = (*arena)->Map(std::uint64_t{1} << 32);
  ASSERT_TRUE(large) << large.status().ToString();
  EXPECT_EQ(Blocks((*arena)->descriptor()), 0);
  std::memset((*large)->data(), 1, 1 << 20);
  EXPECT_GE(Blocks((*arena)->descriptor()), 2'048);
  large->reset();
  EXPECT_EQ(Blocks((*arena)->descriptor()), 0);
}

TEST(Arena, AMappingOutlivesTheSession) {
  std::unique_ptr<Arena::Mapping> mapping;
  {
    const auto arena = Arena::Make("test");
    ASSERT_TRUE(arena);
    mapping = *(*arena)->Map(1);
  }
  mapping->data()[0] = std::byte{1};
  EXPECT_EQ(mapping->data()[0], std::byte{1});
}

TEST(Arena, RefusesWhatCannotBe) {
  const auto arena = Arena::Make("test");
  ASSERT_TRUE(arena);
  for (const std::uint64_t bytes : {UINT64_MAX, std::uint64_t{1} << 63, std::uint64_t{1} << 62}) {
    const auto mapping = (*arena)->Map(bytes);
    ASSERT_FALSE(mapping);
    EXPECT_EQ(mapping.status().reason(), reason::kDeviceMemory);
  }
  EXPECT_TRUE((*arena)->Map(1));
}

TEST(ClockMap, TightensToTheOffset) {
  ClockMap map;  // the device's clock is 1,000 behind ours
  map.Observe(At(5'000), 4'100, At(5'300));
  EXPECT_GE(map.Map(4'100), At(5'000));
  EXPECT_LE(map.Map(4'100), At(5'300));
  map.Observe(At(6'000), 5'001, At(6'002));
  EXPECT_GE(map.Map(5'001), At(6'000));
  EXPECT_LE(map.Map(5'001), At(6'002));
}

TEST(ClockMap, FollowsADrift) {
  ClockMap map;
  for (std::int64_t i = 0; i < 1'000; ++i) {
    const std::int64_t ours = i * 1'000'000;
    const std::int64_t theirs = 7'000'000 + ours + ours / 10'000;  // 100 parts per million fast
    map.Observe(At(ours - 10), static_cast<std::uint64_t>(theirs), At(ours + 10));
    EXPECT_LE(std::abs((map.Map(static_cast<std::uint64_t>(theirs)) - At(ours)).count()), 10);
  }
}

}  // namespace
}  // namespace gpusched::device
