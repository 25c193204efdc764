// Quotas: sums that are checked, refusals that say what is left, nothing that underflows.
#include "device/quota_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusched::device {
namespace {

using ::testing::HasSubstr;

constexpr SessionId kOne{.slot = 0, .serial = 1};
constexpr SessionId kTwo{.slot = 1, .serial = 2};

TEST(QuotaBook, PromisesNoMoreThanTheDeviceHas) {
  QuotaBook book(1'000);
  EXPECT_TRUE(book.Open(kOne, 600).ok());
  const Status refused = book.Open(kTwo, 401);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.reason(), reason::kDeviceMemory);
  EXPECT_THAT(refused.message(), HasSubstr("400B of the device's 1000B"));
  EXPECT_EQ(book.Open(kTwo, UINT64_MAX).reason(), reason::kDeviceMemory);
  EXPECT_TRUE(book.Open(kTwo, 400).ok());
  book.Close(kOne);
  EXPECT_TRUE(book.Open(kOne, 600).ok());
}

TEST(QuotaBook, ASessionTakesNoMoreThanItsQuota) {
  QuotaBook book(1'000);
  ASSERT_TRUE(book.Open(kOne, 100).ok());
  EXPECT_TRUE(book.Take(kOne, 60).ok());
  const Status refused = book.Take(kOne, 41);
  EXPECT_EQ(refused.reason(), reason::kQuotaExceeded);
  EXPECT_THAT(refused.message(), HasSubstr("40B of the session's quota of 100B"));
  EXPECT_EQ(book.Take(kOne, UINT64_MAX).reason(), reason::kQuotaExceeded);
  EXPECT_TRUE(book.Take(kOne, 40).ok());
  book.Give(kOne, 60);
  EXPECT_TRUE(book.Take(kOne, 60).ok());
}

TEST(QuotaBook, GivingBackMoreThanWasTakenDoesNotUnderflow) {
  QuotaBook book(1'000);
  ASSERT_TRUE(book.Open(kOne, 100).ok());
  book.Give(kOne, 50);
  EXPECT_EQ(book.Take(kOne, 101).reason(), reason::kQuotaExceeded);
  EXPECT_TRUE(book.Take(kOne, 100).ok());
}

TEST(QuotaBook, KnowsOnlyOpenSessions) {
  QuotaBook book(1'000);
  EXPECT_EQ(book.Take(kOne, 1).reason(), reason::kUnknownSession);
  ASSERT_TRUE(book.Open(kOne, 0).ok());
  EXPECT_EQ(book.Open(kOne, 0).reason(), reason::kIdInUse);
  EXPECT_EQ(book.Take(kOne, 1).reason(), reason::kQuotaExceeded);
  book.Close(kOne);
  book.Close(kOne);
  EXPECT_EQ(book.Take(kOne, 1).reason(), reason::kUnknownSession);
}

}  // namespace
}  // namespace gpusched::device
