// Recorded traces become arrivals; what is no trace is refused with its line.
#include "support/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace gpusched::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class TraceFile : public testing::Test {
 protected:
  TraceFile() {
    const int fd = mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    close(fd);
  }
  ~TraceFile() override { std::remove(path_.c_str()); }

  Result<Trace> Read(const std::string& content) {
    std::ofstream(path_) << content;
    return ReadTrace(path_);
  }

 private:
  std::string path_ = testing::TempDir() + "/trace-XXXXXX";
};

TEST_F(TraceFile, AzureStampsAndTokensBecomeArrivals) {
  const Result<Trace> trace = Read(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-11-16 23:59:59.5000000,100,10\n"
      "2023-11-17 00:00:01.7500000,50,0\r\n");
  ASSERT_TRUE(trace.ok()) << trace.status().ToString();
  ASSERT_EQ(trace->arrivals.size(), 2u);
  EXPECT_EQ(trace->arrivals[0].at, seconds(0));
  EXPECT_EQ(trace->arrivals[0].work, milliseconds(2 + 2 + 5));
  // The seconds are read as a double, to well below a microsecond.
  EXPECT_NEAR(static_cast<double>(trace->arrivals[1].at.count()), 2.25e9, 100);
  EXPECT_EQ(trace->arrivals[1].work, milliseconds(3));
  EXPECT_EQ(trace->remark, "");
}

TEST_F(TraceFile, MooncakeBatchesAreSpreadAndThatIsSaid) {
  const Result<Trace> trace = Read(
      "timestamp_ms,input_length,output_length,n_hash_ids\n"
      "0,0,0,1\n0,0,0,1\n0,0,0,1\n3000,100,2,1\n");
  ASSERT_TRUE(trace.ok()) << trace.status().ToString();
  ASSERT_EQ(trace->arrivals.size(), 4u);
  EXPECT_EQ(trace->arrivals[1].at, seconds(1));
  EXPECT_EQ(trace->arrivals[2].at, seconds(2));
  EXPECT_EQ(trace->arrivals[3].at, seconds(3));
  EXPECT_EQ(trace->arrivals[3].work, milliseconds(5));
  EXPECT_NE(trace->remark.find("spread evenly"), std::string::npos);
}

TEST_F(TraceFile, WhatIsNoTraceIsRefusedWithItsLine) {
  EXPECT_EQ(Read("worker,gpu,time\n1,2,3\n").status().reason(), "BAD_TRACE");
  const Status number = Read(
                            "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                            "2023-11-16 18:15:46,1,1\n2023-11-16 18:15:47,x,1\n")
                            .status();
  EXPECT_NE(number.message().find(":3:"), std::string::npos) << number.message();
  EXPECT_FALSE(Read("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,1,-1\n").ok());
  EXPECT_FALSE(Read("TIMESTAMP,ContextTokens,GeneratedTokens\n").ok());
  EXPECT_EQ(ReadTrace("/no/such/trace.csv").status().code(), StatusCode::kNotFound);
}

TEST(LanguageModelWork, IsTheCostModelOfTheTraces) {
  EXPECT_EQ(LanguageModelWork(1, 1), milliseconds(2) + microseconds(20) + microseconds(500));
}

TEST(GeneratedTrace, SaysThatItIsGenerated) {
  const Trace trace = GeneratedTrace(5'000, 1);
  EXPECT_EQ(trace.arrivals.size(), 5'000u);
  EXPECT_NE(trace.remark.find("generated"), std::string::npos);
  // 5.5 a second of 2 + 24.74 + 110.5 ms on average.
  EXPECT_NEAR(LoadOf(trace.arrivals), 0.755, 0.04);
}

}  // namespace
}  // namespace gpusched::bench
