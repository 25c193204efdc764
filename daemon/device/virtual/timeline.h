// When commands run on a device that keeps order: one after the other, none before it was
// submitted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "device/virtual/cost_model.h"
#include "gpusched/policy/types.h"

namespace gpusched::device {

class Timeline {
 public:
  struct Span {
    Time started, ended;
  };

  explicit Timeline(CostModel model) : model_(model) {}

  // start = max(submitted, end of the one before); end = start + what the model says.
  Span Append(Time submitted, const Asked& asked) {
    const Time started = std::max(submitted, free_at_);
    free_at_ = After(started, model_.DurationOf(asked, previous_, number_++));
    previous_ = asked.session;
    return {started, free_at_};
  }

  const CostModel& model() const { return model_; }

 private:
  CostModel model_;
  Time free_at_ = Time::min();  // the end of the last command
  std::optional<SessionId> previous_;
  std::uint64_t number_ = 0;
};

}  // namespace gpusched::device
