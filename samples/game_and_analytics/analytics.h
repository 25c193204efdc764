// The analytics' side: an analysis is one job, k-means from a start of its own and histograms.
#pragma once

#include <gpusched/client.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "common/computing_session.h"
#include "points.h"

namespace game {

// An analysis and its findings; it must live until the job is over.
struct Analysis {
  std::uint32_t seed = 0;  // of the centroids it starts from
  Findings findings;
};

class Analytics {
 public:
  // An analysis looks at as many points as take size.alone. The session must outlive it.
  static gpusched::Result<std::unique_ptr<Analytics>> Open(gpusched::Session& session,
                                                           const samples::Size& size);

  gpusched::Result<gpusched::Submission> Submit(Analysis& analysis,
                                                const gpusched::SubmitOptions& options = {});
  bool IsRight(const Analysis& analysis) const;

  std::size_t points() const { return point_count_; }

 private:
  struct Memory {
    gpusched::Buffer points, centroids, sums, bins;
  };
  Analytics(gpusched::Session& session, gpusched::Module module, Memory memory,
            std::size_t launches_per_round)
      : session_(session),
        module_(std::move(module)),
        memory_(std::move(memory)),
        launches_per_round_(launches_per_round) {}
  gpusched::Job Build(const Centroids& start, Findings& to) const;

  gpusched::Session& session_;
  gpusched::Module module_;
  Memory memory_;
  std::size_t launches_per_round_ = 1;
  std::vector<std::int32_t> points_;
  std::size_t point_count_ = 0;
};

}  // namespace game
