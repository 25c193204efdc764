// Reads recorded requests, kernel chains and arrival families: every kind of file in the workloads'
// folder.
//
// The files stay where they are (GPUSCHED_WORKLOADS, default ../shared/workloads). Each loader
// checks the whole of what it reads; errors name file and line.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/status.h"
#include "sim/csv_file.h"
#include "sim/fixed_point.h"
#include "sim/simulation.h"

namespace gpusched::sim {

// ---- Requests: when they came and what they ask for ------------------------------------------

struct Request {
  Duration at{0};  // after the first
  Duration work{0};
};

// Device time of a request to a language model: 2 ms + 0.02 ms a context token + 0.5 ms a generated
// one. A model for scheduling work, no claim about a GPU.
Duration LanguageModelWork(std::int64_t context_tokens, std::int64_t generated_tokens);

// A trace, one request at a time: Azure's (TIMESTAMP,ContextTokens,GeneratedTokens) or Mooncake's
// (timestamp_ms,...; its stamps are rounded to 3 s, so each batch is spread evenly over its 3 s).
class RequestTrace {
 public:
  static Result<RequestTrace> Open(const std::string& path);
  // Nothing: the trace is over.
  Result<std::optional<Request>> Next();

 private:
  enum class Kind : std::uint8_t { kAzure, kMooncake };
  explicit RequestTrace(Kind kind, CsvFile file) : kind_(kind), file_(std::move(file)) {}
  Result<bool> ReadRow(Request& row);
  Status ReadBatch();

  Kind kind_;
  CsvFile file_;
  std::optional<Duration> origin_;
  Duration last_{0};
  std::deque<Request> batch_;  // Mooncake: of one stamp, spread
  std::optional<Request> following_;
};

// All of a trace in one pass: what a load is computed from, and proof that it can be read.
struct TraceTotals {
  std::uint64_t requests = 0;
  Duration span{0}, work{0};
};
Result<TraceTotals> TotalsOf(const std::string& path);

// ---- Arrival families (ServeGen) --------------------------------------------------------------

enum class Family : std::uint8_t { kPoisson, kGamma, kWeibull };

struct RateWindow {
  Duration from{0};  // of the first window of the file's day
  Duration mean_gap{0};
  Family family = Family::kPoisson;
  Fixed shape = kOne;
};
struct TenantClient {
  std::string name;
  std::vector<RateWindow> windows;  // in order; each holds for kRateWindow
};
inline constexpr Duration kRateWindow = std::chrono::minutes(10);
Result<std::vector<TenantClient>> LoadServeGen(const std::string& path);

// ---- Mixes of real-time and best-effort tasks (DISB) ------------------------------------------

struct DisbTask {
  std::string name, model;
  enum class Load : std::uint8_t { kPeriodic, kPoisson, kClosedLoop } load = Load::kClosedLoop;
  Duration gap{0};  // between requests, on average; zero for a closed loop
  bool real_time = false;
};
Result<std::vector<DisbTask>> LoadDisb(const std::string& path);

// What DISB measured: mean latency, and that of the same client alone.
struct DisbResult {
  std::string framework_and_mix;  // "trt.A"
  std::string client;
  Duration latency{0}, alone{0};
  std::int64_t throughput_ppb = 0;  // requests a second, in billionths
};
Result<std::vector<DisbResult>> LoadDisbResults(const std::string& path);

// ---- Steps of a training (Alibaba) ------------------------------------------------------------

// Step times of each worker, in order, in the file's own unit.
Result<std::vector<std::vector<std::int64_t>>> LoadSteps(const std::string& path);

// ---- Kernel chains (Orion, REEF, HTA) ----------------------------------------------------------

struct RecordedOperation {
  Work work;
  std::uint32_t stream = 0;  // dense, in order of first appearance
  Duration released{0};      // HTA: when the CPU launched it, after the first of its step
  std::uint32_t step = 0;    // HTA: dense
};
// Launch order. Orion and REEF have one stream, one step and everything released at once. A kernel
// is known by its place in the chain, as within a template. `whole` makes every launch uncuttable.
Result<std::vector<RecordedOperation>> LoadChain(const std::string& path, bool whole);
// Those of one step, as one job.
Recipe RecipeOf(const std::vector<RecordedOperation>& chain, std::uint32_t step = 0);

// ---- Published figures (XSched) -----------------------------------------------------------------

struct XSchedFigures {
  struct Latency {
    std::string device;
    Duration isolated_p50{0}, isolated_p99{0}, native_p99{0}, scheduled_p99{0};
  };
  struct Preemption {
    Duration kernel{0}, p50{0}, p99{0};
  };
  std::vector<Latency> latencies;
  std::vector<Preemption> level1, level2;  // commands in flight: eight; one
};
Result<XSchedFigures> LoadXSched(const std::string& path);

// ---- The folder ---------------------------------------------------------------------------------

// GPUSCHED_WORKLOADS or ../shared/workloads; nothing: it is not there.
std::optional<std::string> WorkloadsFolder();

}  // namespace gpusched::sim
