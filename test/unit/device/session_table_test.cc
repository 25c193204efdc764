// What a device's sessions hold: ids and quotas are checked before anything is made, and given back
// after it is gone.
#include "device/session_table.h"

#include <gtest/gtest.h>

#include <string>

#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

constexpr SessionId kOne{.slot = 0, .serial = 1}, kOther{.slot = 1, .serial = 2};

class ASessionTable : public ::testing::Test {
 protected:
  using Table = SessionTable<std::string, std::string, int>;

  Status Add(BufferId buffer, std::uint64_t bytes) {
    return table_.AddBuffer({.session = kOne, .buffer = buffer, .bytes = bytes}, [&](int& own) {
      ++made_;
      ++own;
      return Result<std::string>("buffer " + std::to_string(own));
    });
  }
  Status AddModule(ModuleId module) {
    return table_.AddModule(kOne, module, [&] {
      ++made_;
      return Result<std::string>("module");
    });
  }

  Table table_{100};
  int made_ = 0;
};

TEST_F(ASessionTable, MakesNothingThatItRefuses) {
  EXPECT_EQ(Add(1, 1).reason(), reason::kUnknownSession);
  EXPECT_EQ(AddModule(1).reason(), reason::kUnknownSession);
  ASSERT_TRUE(table_.Open(kOne, {.memory_bytes = 60}).ok());
  EXPECT_EQ(table_.Open(kOne, {.memory_bytes = 1}).reason(), reason::kIdInUse);
  EXPECT_EQ(table_.Open(kOther, {.memory_bytes = 41}).reason(), reason::kDeviceMemory);
  EXPECT_EQ(Add(1, 61).reason(), reason::kQuotaExceeded);
  EXPECT_EQ(made_, 0);
  EXPECT_TRUE(Add(1, 40).ok());
  EXPECT_TRUE(AddModule(1).ok());
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(Add(1, 1).reason(), reason::kIdInUse);
  EXPECT_EQ(AddModule(1).reason(), reason::kIdInUse);
  EXPECT_EQ(made_, 2);
}

TEST_F(ASessionTable, WhatCouldNotBeMadeTakesNothing) {
  ASSERT_TRUE(table_.Open(kOne, {.memory_bytes = 60}).ok());
  const Status why(StatusCode::kInternal, reason::kDeviceFailed, "out of order");
  EXPECT_EQ(table_
                .AddBuffer({.session = kOne, .buffer = 1, .bytes = 60},
                           [&](int&) { return Result<std::string>(why); })
                .reason(),
            reason::kDeviceFailed);
  EXPECT_EQ(table_.AddModule(kOne, 1, [&] { return Result<std::string>(why); }).reason(),
            reason::kDeviceFailed);
  EXPECT_EQ(table_.FindModule(kOne, 1).status().reason(), reason::kUnknownModule);
  EXPECT_TRUE(Add(1, 60).ok()) << "the quota is there, and the number";
}

TEST_F(ASessionTable, FindsWhatTheSessionHoldsAndNoOther) {
  ASSERT_TRUE(table_.Open(kOne, {.memory_bytes = 60}, 41).ok());
  ASSERT_TRUE(table_.Open(kOther, {.memory_bytes = 40}).ok());
  ASSERT_TRUE(Add(7, 10).ok());
  EXPECT_EQ((*table_.FindBuffer(kOne, 7))->buffer, "buffer 42");
  EXPECT_EQ((*table_.FindBuffer(kOne, 7))->bytes, 10u);
  EXPECT_EQ(table_.FindBuffer(kOther, 7).status().reason(), reason::kUnknownBuffer);
  EXPECT_EQ(table_.FindBuffer({.slot = 2, .serial = 9}, 7).status().reason(),
            reason::kUnknownSession);
  EXPECT_EQ(table_.RemoveBuffer(kOther, 7).reason(), reason::kUnknownBuffer);
  EXPECT_EQ(table_.RemoveModule(kOne, 7).reason(), reason::kUnknownModule);
}

// Else another session would be promised memory that is still there.
TEST_F(ASessionTable, AQuotaIsFreeWhenItsMemoryIsGone) {
  ASSERT_TRUE(table_.Open(kOne, {.memory_bytes = 60}).ok());
  ASSERT_TRUE(Add(1, 60).ok());
  EXPECT_TRUE(table_
                  .RemoveBuffer(kOne, 1,
                                [&](std::string gone) {
                                  EXPECT_EQ(gone, "buffer 1");
                                  EXPECT_EQ(Add(2, 1).reason(), reason::kQuotaExceeded);
                                })
                  .ok());
  EXPECT_TRUE(Add(2, 60).ok());
  EXPECT_TRUE(table_
                  .Close(kOne,
                         [&](Table::Session gone) {
                           EXPECT_EQ(gone.buffers.size(), 1u);
                           EXPECT_EQ(table_.Open(kOther, {.memory_bytes = 41}).reason(),
                                     reason::kDeviceMemory);
                         })
                  .ok());
  EXPECT_TRUE(table_.Open(kOther, {.memory_bytes = 100}).ok());
  EXPECT_EQ(table_.Close(kOne).reason(), reason::kUnknownSession);
}

}  // namespace
}  // namespace gpusched::device
