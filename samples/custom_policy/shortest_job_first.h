// Shortest job first: the session whose next job has the least work left, unless someone grew
// impatient.
//
// Promise: the smallest mean waiting time any order could give, and nobody waits for much longer
// than `patience`. Weakness: no shares and no deadlines; a long job is served in the gaps or when
// it has waited long enough.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpusched/policy/indexed_heap.h"
#include "gpusched/policy/kind.h"
#include "gpusched/policy/policy.h"

namespace sample {

// The row for the catalog.
extern const gpusched::PolicyKind kShortestJobFirst;

class ShortestJobFirst final : public gpusched::Policy {
 public:
  ShortestJobFirst(gpusched::Duration slice, gpusched::Duration patience);
  static std::unique_ptr<gpusched::Policy> Make(const gpusched::Parameters&,
                                                std::vector<gpusched::FieldError>& errors);

  gpusched::ShareRule share_rule() const override { return gpusched::ShareRule::kNone; }
  void SessionAdded(const gpusched::SessionView&) override;
  void SessionRunnable(const gpusched::SessionView&) override;
  void SessionIdle(gpusched::SessionId) override;
  void SessionChanged(const gpusched::SessionView&) override;
  void SessionRemoved(gpusched::SessionId) override;
  void Charged(const gpusched::SessionView&, gpusched::Duration) override;
  gpusched::Duration LongestWait(const gpusched::SessionView&) const override;
  gpusched::Decision Decide(const gpusched::DecisionContext&) override;

 private:
  // Equal sessions in order of opening, so that the same facts lead to the same decisions.
  struct Work {
    gpusched::Duration left{0};
    std::uint64_t serial = 0;
    friend auto operator<=>(const Work&, const Work&) = default;
  };
  struct Wait {
    gpusched::Time since{};
    std::uint64_t serial = 0;
    friend auto operator<=>(const Wait&, const Wait&) = default;
  };

  void Queue(const gpusched::SessionView&);

  const gpusched::Duration slice_, patience_;
  std::vector<gpusched::SessionId> ids_;  // by slot
  gpusched::IndexedHeap<Work> by_work_;   // the sessions with work
  gpusched::IndexedHeap<Wait> by_wait_;   // the same
  gpusched::Duration longest_slice_{0};   // charged so far: what cannot be cut may overrun
  std::size_t most_runnable_ = 0;
};

}  // namespace sample
