// Every kind of file: what a good one gives, and what is said of each bad one.
#include "sim/loaders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "temporary_file.h"

namespace gpusched::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const std::string kAzure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
const std::string kMooncake = "timestamp_ms,input_length,output_length,n_hash_ids\n";
const std::string kServeGen = "client,window_start_s,rate_per_s,cv,pattern,shape,scale\n";
const std::string kSteps = ",worker,gpu,time,batch_time_norm\n";
const std::string kOrion = "Name,Profile,Memory_footprint,SM_usage,Duration\n";
const std::string kReef =
    "idx,kernel,grid_x,grid_y,grid_z,block_x,block_y,block_z,static_smem_bytes,"
    "latency_us_full_gpu,latency_us_1block_per_cu\n";
const std::string kHta =
    "step,kind,name,stream,launch_us,start_us,dur_us,grid_x,grid_y,grid_z,block_x,block_y,block_z,"
    "regs_per_thread,smem_bytes,blocks_per_sm,warps_per_sm,est_occupancy_pct,bytes\n";

// Of the first kind of error that `load` meets: "LINE: what", without the path.
template <typename Load>
std::string ErrorOf(const std::string& content, Load load) {
  const TemporaryFile file(content);
  const auto result = load(file.path());
  if (result.ok()) return "none";
  const std::string& message = result.status().message();
  EXPECT_EQ(message.find(file.path() + ":"), 0u) << message;
  return message.substr(std::min(message.size(), file.path().size() + 1));
}
std::string TraceError(const std::string& content) { return ErrorOf(content, TotalsOf); }
std::string ChainError(const std::string& content) {
  return ErrorOf(content, [](const std::string& path) { return LoadChain(path, false); });
}

TEST(RequestTrace, ReadsTimesToTheNanosecond) {
  const TemporaryFile file(kAzure +
                           "2023-12-31 23:59:59.9000000,100,10\n"
                           "2024-01-01 00:00:00.0000001,0,0\n"
                           "2024-03-01 00:00:00.0000000,0,0\n");
  Result<RequestTrace> trace = RequestTrace::Open(file.path());
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  const Request first = **trace->Next();
  EXPECT_EQ(first.at, 0ns);
  EXPECT_EQ(first.work, 2ms + 2ms + 5ms);
  EXPECT_EQ((**trace->Next()).at, 100'000'100ns);
  // 2024 is a leap year: 31 + 29 days.
  EXPECT_EQ((**trace->Next()).at, std::chrono::hours(60 * 24) + 100ms);
  EXPECT_FALSE((*trace->Next()).has_value());
}

TEST(RequestTrace, SpreadsABatchOfRoundedStampsOverItsTime) {
  const TemporaryFile file(kMooncake + "0,0,0,1\n0,0,0,1\n0,0,0,1\n2999,0,0,1\n6000,0,0,1\n");
  Result<RequestTrace> trace = RequestTrace::Open(file.path());
  ASSERT_TRUE(trace.ok());
  std::vector<Duration> at;
  for (;;) {
    const auto next = trace->Next();
    ASSERT_TRUE(next.ok());
    if (!next->has_value()) break;
    at.push_back((*next)->at);
  }
  const Duration room = 2'999ms;
  EXPECT_EQ(at, (std::vector<Duration>{0ns, room / 3, room * 2 / 3, 2'999ms, 6s}));
}

TEST(RequestTrace, NamesWhatIsWrongAndWhere) {
  const std::string good = "2023-11-16 18:15:46.6805900,374,44\n";
  EXPECT_THAT(TraceError(""), HasSubstr("1: the file is empty"));
  EXPECT_THAT(TraceError("a,b\n"), HasSubstr("1: no trace of requests"));
  EXPECT_THAT(TraceError(kAzure), HasSubstr("2: a trace needs at least two requests"));
  EXPECT_THAT(TraceError(kAzure + good), HasSubstr("2: a trace needs at least two"));
  EXPECT_THAT(TraceError(kAzure + good + good), HasSubstr("same time"));
  EXPECT_THAT(TraceError(kAzure + good + "2023-11-16 18:15:45.0,1,1\n"),
              HasSubstr("3: is earlier"));
  EXPECT_THAT(TraceError(kAzure + good + "2023-11-16 18:15:47.0,1"), HasSubstr("3: ends without"));
  EXPECT_THAT(TraceError(kAzure + good + "2023-11-16 18:15:47.0,1\n"),
              HasSubstr("3: has 2 fields"));
  EXPECT_THAT(TraceError(kAzure + "2023-13-16 18:15:47.0,1,1\n"), HasSubstr("2: '2023-13-16"));
  EXPECT_THAT(TraceError(kAzure + "yesterday,1,1\n"), HasSubstr("2: 'yesterday' is no time"));
  EXPECT_THAT(TraceError(kAzure + "2023-11-16 18:15:47.0,-1,1\n"), HasSubstr("2: -1 in column"));
  EXPECT_THAT(TraceError(kAzure + "2023-11-16 18:15:47.0,99999999,1\n"), HasSubstr("out of range"));
  EXPECT_THAT(TraceError(kAzure + "2023-11-16 18:15:47.0,1e3,1\n"),
              HasSubstr("2: '1e3' in column"));
  EXPECT_THAT(TraceError(kAzure + std::string(100'000, 'x') + "\n"), HasSubstr("2: is longer"));
  EXPECT_THAT(TraceError(kAzure + std::string(3, '\0') + "\n"), HasSubstr("2: holds a zero byte"));
  EXPECT_THAT(TotalsOf("/nowhere/at/all.csv").status().message(), HasSubstr("no such file"));
  EXPECT_THAT(TotalsOf("/").status().message(), HasSubstr("no such file"));
}

TEST(LoadServeGen, ReadsFamiliesAndRefusesWhatIsNone) {
  const TemporaryFile file(kServeGen + "0,0,0.5,1,Gamma,0.25,9\n0,600,2,1,Weibull,0.5,9\n");
  const auto clients = LoadServeGen(file.path());
  ASSERT_TRUE(clients.ok()) << clients.status().message();
  ASSERT_EQ(clients->size(), 1u);
  const RateWindow& first = (*clients)[0].windows[0];
  EXPECT_EQ(first.mean_gap, 2s);
  EXPECT_EQ(first.shape, kOne / 4);
  EXPECT_EQ((*clients)[0].windows[1].family, Family::kWeibull);

  const auto error = [](const std::string& rows) {
    return ErrorOf(kServeGen + rows, LoadServeGen);
  };
  EXPECT_THAT(error(""), HasSubstr("has no client"));
  EXPECT_THAT(error("0,0,0,1,Gamma,1,1\n"), HasSubstr("2: 0 in column rate_per_s"));
  EXPECT_THAT(error("0,0,1,1,Pareto,1,1\n"), HasSubstr("2: unknown pattern 'Pareto'"));
  EXPECT_THAT(error("0,0,1,1,Weibull,0.05,1\n"), HasSubstr("2: a Weibull shape below 0.1"));
  EXPECT_THAT(error("0,0,1,1,Gamma,1,1\n0,0,1,1,Gamma,1,1\n"), HasSubstr("3: repeats the window"));
  EXPECT_THAT(error("1,0,1,1,Gamma,1,1\n0,0,1,1,Gamma,1,1\n"), HasSubstr("3: is out of order"));
  EXPECT_THAT(error("0,0,nan,1,Gamma,1,1\n"), HasSubstr("2: 'nan' in column rate_per_s"));
}

TEST(LoadSteps, KeepsWorkersApart) {
  const TemporaryFile file(kSteps + "0,0,1,1,476\n1,1,1,1,509\n2,0,1,11,480\n");
  const auto workers = LoadSteps(file.path());
  ASSERT_TRUE(workers.ok()) << workers.status().message();
  EXPECT_EQ(*workers, (std::vector<std::vector<std::int64_t>>{{476, 480}, {509}}));
  EXPECT_THAT(ErrorOf(kSteps + "0,0,1,5,1\n1,0,1,4,1\n", LoadSteps), HasSubstr("3: is earlier"));
  EXPECT_THAT(ErrorOf(kSteps + "0,0,1,5,0\n", LoadSteps), HasSubstr("2: 0 in column"));
  EXPECT_THAT(ErrorOf(kSteps, LoadSteps), HasSubstr("2: the file has no step"));
}

TEST(LoadChain, ReadsEachRecordersTable) {
  const TemporaryFile orion(kOrion + "Conv,1,0,98,100480\nBatchNorm,0,0,0,40480\n");
  const auto chain = LoadChain(orion.path(), false);
  ASSERT_TRUE(chain.ok()) << chain.status().message();
  ASSERT_EQ(chain->size(), 2u);
  EXPECT_EQ((*chain)[0].work.time, 100'480ns);
  EXPECT_EQ((*chain)[0].work.operation.extent, 98u);
  EXPECT_TRUE((*chain)[0].work.operation.cuttable);
  EXPECT_EQ((*chain)[1].work.operation.extent, 1u);
  EXPECT_NE((*chain)[0].work.operation.estimate_key, (*chain)[1].work.operation.estimate_key);

  const TemporaryFile reef(kReef + "0,conv,7,16,2,16,1,32,3132,104,56\n");
  const auto reef_chain = LoadChain(reef.path(), true);
  ASSERT_TRUE(reef_chain.ok()) << reef_chain.status().message();
  EXPECT_EQ((*reef_chain)[0].work.operation.extent, 224u);
  EXPECT_EQ((*reef_chain)[0].work.time, 104us);
  EXPECT_FALSE((*reef_chain)[0].work.operation.cuttable);

  const TemporaryFile hta(kHta +
                          "1,memcpy,Memcpy DtoH (Device -> Pageable),7,-5,0,12,,,,,,,,,,,,256\n"
                          "1,kernel,k,20,10.5,20,4.928,4,106,1,128,1,1,30,0,5.3,21.2,33,\n");
  const auto hta_chain = LoadChain(hta.path(), false);
  ASSERT_TRUE(hta_chain.ok()) << hta_chain.status().message();
  EXPECT_EQ((*hta_chain)[0].work.operation.kind, core::Operation::Kind::kCopyOut);
  EXPECT_EQ((*hta_chain)[0].work.operation.extent, 256u);
  EXPECT_EQ((*hta_chain)[1].stream, 1u);
  EXPECT_EQ((*hta_chain)[1].released, 15'500ns);
  EXPECT_EQ((*hta_chain)[1].work.time, 4'928ns);
}

TEST(LoadChain, NamesWhatIsWrongAndWhere) {
  EXPECT_THAT(ChainError(""), HasSubstr("1: the file is empty"));
  EXPECT_THAT(ChainError(kOrion), HasSubstr("2: the chain has no operation"));
  EXPECT_THAT(ChainError(kAzure), HasSubstr("1: no kernel chain"));
  EXPECT_THAT(ChainError(kOrion + "Conv,1,0,98,0\n"), HasSubstr("2: 0 in column Duration"));
  EXPECT_THAT(ChainError(kOrion + "Conv,1,0,98,-5\n"), HasSubstr("2: -5 in column Duration"));
  EXPECT_THAT(ChainError(kOrion + "Conv,1,0,98,9e18\n"), HasSubstr("2: '9e18'"));
  EXPECT_THAT(ChainError(kOrion + "Conv,1,0,98"), HasSubstr("2: ends without a line end"));
  EXPECT_THAT(ChainError(kReef + "1,conv,7,16,1,16,1,32,1,104,56\n"), HasSubstr("2: idx is 1"));
  EXPECT_THAT(ChainError(kReef + "0,conv,0,16,1,16,1,32,1,104,56\n"), HasSubstr("grid_x"));
  EXPECT_THAT(ChainError(kReef + "0,conv,2147483647,2147483647,9,16,1,32,1,104,56\n"),
              HasSubstr("2: the grid has too many blocks"));
  EXPECT_THAT(ChainError(kHta + "1,sleep,n,7,0,0,1,,,,,,,,,,,,1\n"),
              HasSubstr("unknown kind 'sleep'"));
  EXPECT_THAT(
      ChainError(kHta + "1,memset,n,7,0,9,1,,,,,,,,,,,,1\n1,memset,n,7,0,8,1,,,,,,,,,,,,1\n"),
      HasSubstr("3: starts before the line before"));
}

TEST(LoadDisb, ReadsTasksAndRefusesWhatIsNone) {
  const std::string client = R"("client": {"model_name": "m"})";
  const TemporaryFile file(R"({"tasks": [
    {"id": "a_rt", "load": {"type": "periodic", "frequency": 100}, )" +
                           client + R"(},
    {"id": "b_be", "load": {"type": "continuous"}, )" +
                           client + "}]}");
  const auto tasks = LoadDisb(file.path());
  ASSERT_TRUE(tasks.ok()) << tasks.status().message();
  EXPECT_EQ((*tasks)[0].gap, 10ms);
  EXPECT_TRUE((*tasks)[0].real_time);
  EXPECT_EQ((*tasks)[1].load, DisbTask::Load::kClosedLoop);

  EXPECT_THAT(ErrorOf("", LoadDisb), HasSubstr("1: the file is empty"));
  EXPECT_THAT(ErrorOf("{\"tasks\": [\n", LoadDisb), HasSubstr("2: "));
  EXPECT_THAT(ErrorOf("{}\n", LoadDisb), HasSubstr("lacks a list 'tasks'"));
  EXPECT_THAT(ErrorOf("{\"tasks\":\n [{\"id\": \"a\"}]}", LoadDisb),
              HasSubstr("2: lacks 'client'"));
  const std::string odd = "{\"id\": \"a\", \"load\": {\"type\": \"odd\"}, " + client + "}";
  EXPECT_THAT(ErrorOf("{\"tasks\": [" + odd + "]}", LoadDisb), HasSubstr("unknown load 'odd'"));
  const std::string fine = "{\"id\": \"a\", \"load\": {\"type\": \"continuous\"}, " + client + "}";
  EXPECT_THAT(ErrorOf("{\"tasks\": [" + fine + ",\n" + fine + "]}", LoadDisb),
              HasSubstr("2: repeats the task 'a'"));
  const std::string never =
      "{\"id\": \"a\", \"load\": {\"type\": \"poisson\", \"frequency\": -1}, " + client + "}";
  EXPECT_THAT(ErrorOf("{\"tasks\": [" + never + "]}", LoadDisb), HasSubstr("'frequency' is '-1'"));
  EXPECT_THAT(ErrorOf("[1, 2]", LoadXSched), HasSubstr("no JSON object"));
  EXPECT_THAT(ErrorOf("{\"a\": 1}", LoadXSched), HasSubstr("1: "));
  EXPECT_THAT(ErrorOf("{\"results\": {\"x\": [{\"client\": \"c\"}]}}", LoadDisbResults),
              HasSubstr("avgTotalLatency"));
}

// The recordings themselves, where they are.
class Workloads : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* named = std::getenv("GPUSCHED_WORKLOADS");
    folder_ = named != nullptr ? named : GPUSCHED_DEFAULT_WORKLOADS;
    if (!std::filesystem::is_directory(folder_)) GTEST_SKIP() << "no recordings in " << folder_;
  }
  std::string folder_;
};

TEST_F(Workloads, EveryFileIsReadWhole) {
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    const std::string path = entry.path().string(), name = entry.path().filename().string();
    Status status;
    if (name.starts_with("azure") || name.starts_with("mooncake")) {
      status = TotalsOf(path).status();
    } else if (name.starts_with("servegen")) {
      status = LoadServeGen(path).status();
    } else if (name.starts_with("alibaba")) {
      status = LoadSteps(path).status();
    } else if (name == "disb_ABC.json") {
      status = LoadDisbResults(path).status();
    } else if (name.starts_with("disb_")) {
      status = LoadDisb(path).status();
    } else if (name == "xsched.json") {
      status = LoadXSched(path).status();
    } else if (entry.path().parent_path().filename() == "kernels") {
      status = LoadChain(path, false).status();
    } else {
      continue;
    }
    EXPECT_TRUE(status.ok()) << status.message();
    ++read;
  }
  EXPECT_GE(read, 20);
}

TEST_F(Workloads, CountsAreThoseOfTheirDescription) {
  const auto conversation = TotalsOf(folder_ + "/requests/azure_llm_2023_conv_first_half.csv");
  ASSERT_TRUE(conversation.ok());
  EXPECT_EQ(conversation->requests, 9'739u);
  const auto tenants = LoadServeGen(folder_ + "/requests/servegen_m-small_days0-1.csv");
  ASSERT_TRUE(tenants.ok());
  EXPECT_EQ(tenants->size(), 32u);
  // The description's closed form: the sum of squares over twice the sum is 212.4 us.
  const auto chain = LoadChain(folder_ + "/kernels/orion_resnet50_32_fb1.csv", true);
  ASSERT_TRUE(chain.ok());
  double sum = 0, squares = 0;
  for (const RecordedOperation& operation : *chain) {
    const auto us = static_cast<double>(operation.work.time.count()) / 1'000;
    sum += us;
    squares += us * us;
  }
  EXPECT_NEAR(squares / (2 * sum), 212.4, 0.05);
}

}  // namespace
}  // namespace gpusched::sim
