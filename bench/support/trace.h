// Reads recorded request traces: real arrivals with real sizes.
//
// The files stay where they are (folder `requests` of GPUSCHED_WORKLOADS, default
// ../shared/workloads); nothing of them is copied into this tree.
#pragma once

#include <optional>
#include <string>

#include "gpusched/status.h"
#include "support/arrivals.h"

namespace gpusched::bench {

struct Trace {
  std::string name;    // for people
  std::string remark;  // what a reader of figures made from it must know; "" if nothing
  Arrivals arrivals;   // from the first request on
};

// Device time of one request of a language model: 2 ms + 0.02 ms a context token + 0.5 ms a
// generated one. A model for scheduling work, no claim about a GPU.
nanoseconds LanguageModelWork(std::int64_t context_tokens, std::int64_t generated_tokens);

// By the file's header line: `TIMESTAMP,ContextTokens,GeneratedTokens` (Azure) or
// `timestamp_ms,input_length,output_length,...` (Mooncake; its stamps are rounded to 3 s, so each
// batch is spread evenly over its 3 s). Any other file is refused by name.
Result<Trace> ReadTrace(const std::string& path);

// The folder `requests` of the workloads, if it is there.
std::optional<std::string> RequestTraceFolder();

// What stands in for a recorded trace where there is none: Poisson arrivals, sizes drawn from a
// geometric spread around the conversation trace's means. It says so in its remark.
Trace GeneratedTrace(std::size_t requests, std::uint64_t seed);

}  // namespace gpusched::bench
