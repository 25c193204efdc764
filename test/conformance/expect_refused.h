// A refusal as a test expects it: code, reason and a part of its words.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "gpusched/status.h"

namespace gpusched::device {

inline void ExpectRefused(const Status& status, StatusCode code, std::string_view reason,
                          const std::string& says) {
  EXPECT_EQ(status.code(), code) << status.ToString();
  EXPECT_EQ(status.reason(), reason) << status.ToString();
  EXPECT_THAT(status.message(), ::testing::HasSubstr(says));
}

}  // namespace gpusched::device
