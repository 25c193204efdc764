// The closed-loop load: an endless task that keeps a few jobs outstanding, as a training run does.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "gpusched/client.h"
#include "support/open_loop.h"

namespace gpusched::bench {

class Endless {
 public:
  // Called by the load's own thread, which waits for the jobs in the order of their submission.
  using Submit = std::function<Result<Submission>()>;

  // The session behind `submit` must outlive this.
  Endless(int outstanding, Submit submit);
  // Submits nothing more, cancels what is outstanding and waits for its end.
  ~Endless();
  Endless(const Endless&) = delete;
  Endless& operator=(const Endless&) = delete;

  // Reports of the jobs that were done by the device's clock in [from, to).
  std::vector<JobReport> DoneBetween(SteadyTime from, SteadyTime to) const;
  // The first thing that went wrong; the load has stopped then.
  Status status() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace gpusched::bench
