// What a service of the main job submits: launches of a given time, or kernels that compute.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "gpusched/client.h"

namespace gpusched::bench {

// Lives in one session, and is used by one load's thread.
class Work {
 public:
  virtual ~Work() = default;
  // The next job; `asked` is the device time that the arrival wants. Work of one size ignores it.
  virtual Result<Submission> Submit(Duration asked, const SubmitOptions& options) = 0;
  // What the kernels of such a job take alone, run whole: launch gaps, chunks and switches are not
  // counted.
  virtual Duration KernelTime(Duration asked) const = 0;

  // After the load has ended: compares some results with a plain computation on the CPU.
  struct Checked {
    std::size_t compared = 0, wrong = 0;
    std::string remark;  // "loss 0.65 -> 0.14"
  };
  virtual Result<Checked> Check() { return Checked{}; }
};

// Loads modules and memory into the session, which outlives the work.
using MakeWork = std::function<Result<std::unique_ptr<Work>>(Session&)>;

}  // namespace gpusched::bench
