// One class for each way in which jobs come.
#include "sim/workload.h"

#include <algorithm>
#include <optional>

namespace gpusched::sim {
namespace {

using Kind = SourceSpec::Kind;

// No job's work strays below a twentieth of its mean.
constexpr std::int64_t kLeastScale = kOrdinaryScale / 20;

// A new job for each that ended, after some time to think.
class ClosedLoop : public SessionLoad {
 public:
  using SessionLoad::SessionLoad;

 protected:
  void Begin(Simulation& sim) override {
    for (std::uint32_t i = 0; i < source().outstanding; ++i) SubmitNext(sim, source().recipe);
  }
  void Ended(Simulation& sim) override {
    if (source().think > Duration(0)) {
      sim.WakeAt(After(sim.now(), source().think), this);
    } else {
      Woken(sim);
    }
  }
  void Woken(Simulation& sim) override {
    if (Open(sim)) SubmitNext(sim, source().recipe);
  }
};

// The recorded step times of a worker, over and over.
class Steps : public SessionLoad {
 public:
  using SessionLoad::SessionLoad;

 protected:
  void Begin(Simulation& sim) override { SubmitStep(sim); }
  void Ended(Simulation& sim) override {
    if (Open(sim)) SubmitStep(sim);
  }

 private:
  void SubmitStep(Simulation& sim) {
    const Duration work = source().unit * (*source().steps)[next_++ % source().steps->size()];
    SubmitNext(sim, std::make_shared<const Recipe>(
                        LaunchesOf(work, source().longest_launch, source().cuttable)));
  }
  std::size_t next_ = 0;
};

// Jobs that come whether or not those before are done, with gaps from a family.
class Arrivals : public SessionLoad {
 public:
  using SessionLoad::SessionLoad;

 protected:
  void Begin(Simulation& sim) override {
    Duration first = Gap();
    if (source().kind == Kind::kPeriodic) {
      first = source().phase >= Duration(0)
                  ? source().phase
                  : random().Between(Duration(0), source().gap - Duration(1));
    }
    sim.WakeAt(After(sim.now(), first), this);
  }
  void Woken(Simulation& sim) override {
    if (!Open(sim)) return;
    SubmitNext(sim, source().recipe);
    sim.WakeAt(After(sim.now(), Gap()), this);
  }

 private:
  Duration Gap() {
    const SourceSpec& from = source();
    if (from.kind == Kind::kPeriodic) return from.gap;
    if (from.kind == Kind::kPoisson) return random().Scaled(from.gap, random().Exponential());
    if (from.kind == Kind::kGamma) {
      return random().Scaled(from.gap, random().GammaShaped(from.shape));
    }
    return random().Scaled(from.gap, random().Weibull(from.shape));
  }
};

// A client whose rate changes from window to window; none in between.
class Windows : public SessionLoad {
 public:
  using SessionLoad::SessionLoad;

 protected:
  void Begin(Simulation& sim) override {
    const auto& windows = *source().windows;
    while (window_ < windows.size() && End() <= source().from) ++window_;
    Schedule(sim, std::max(source().from,
                           window_ < windows.size() ? windows[window_].from : source().from));
  }
  void Woken(Simulation& sim) override {
    if (!Open(sim)) return;
    SubmitNext(sim, source().recipe);
    Schedule(sim, sim.now() - began() + source().from);
  }

 private:
  Duration End() const { return (*source().windows)[window_].from + kRateWindow; }

  // The next arrival after `at` on the file's clock; a gap that leaves its window starts anew in
  // the next one.
  void Schedule(Simulation& sim, Duration at) {
    const auto& windows = *source().windows;
    while (window_ < windows.size()) {
      const RateWindow& window = windows[window_];
      const Fixed draw = window.family == Family::kGamma ? random().GammaShaped(window.shape)
                                                         : random().Weibull(window.shape);
      at = Plus(std::max(at, window.from), random().Scaled(window.mean_gap, draw));
      if (at < End()) {
        sim.WakeAt(After(began(), at - source().from), this);
        return;
      }
      at = End();
      ++window_;
    }
  }

  std::size_t window_ = 0;
};

// Recorded requests with their own work, one at a time from the file.
class TraceLoad : public SessionLoad {
 public:
  using SessionLoad::SessionLoad;

 protected:
  void Begin(Simulation& sim) override {
    if (!source().generated) {
      Result<RequestTrace> opened = RequestTrace::Open(source().file);
      if (!opened.ok()) return Fail(opened.status());
      trace_.emplace(*std::move(opened));
    }
    Schedule(sim);
  }
  void Woken(Simulation& sim) override {
    if (!Open(sim)) return;
    SubmitNext(sim, std::make_shared<const Recipe>(
                        LaunchesOf(next_.work, source().longest_launch, source().cuttable)));
    Schedule(sim);
  }

 private:
  void Schedule(Simulation& sim) {
    if (source().generated) {
      if (number_ == source().generated->size()) return;
      next_ = (*source().generated)[number_++];
    } else {
      const Result<std::optional<Request>> next = trace_->Next();
      if (!next.ok()) return Fail(next.status());
      if (!next->has_value()) return;
      next_ = **next;
    }
    const Wide128 at = Wide128{next_.at.count()} * source().stretch_ppb / kOrdinaryScale;
    sim.WakeAt(
        After(began(), Duration(static_cast<std::int64_t>(std::min<Wide128>(at, INT64_MAX)))),
        this);
  }

  std::optional<RequestTrace> trace_;
  Request next_;
  std::size_t number_ = 0;
};

// A recorded step with its streams: every operation is released when the CPU launched it.
class Replay : public SessionLoad {
 public:
  using SessionLoad::SessionLoad;

 protected:
  void Begin(Simulation& sim) override {
    for (const RecordedOperation& operation : *source().recorded) {
      steps_ = std::max(steps_, operation.step + 1);
    }
    recipes_.reserve(source().recorded->size());
    for (std::size_t i = 0; i < source().recorded->size(); ++i) {
      recipes_.push_back(std::make_shared<const Recipe>(1, (*source().recorded)[i].work));
      order_.push_back(i);
    }
    std::stable_sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
      const RecordedOperation &x = (*source().recorded)[a], &y = (*source().recorded)[b];
      return x.step != y.step ? x.step < y.step : x.released < y.released;
    });
    Schedule(sim);
  }
  void Woken(Simulation& sim) override {
    if (!Open(sim)) return;
    const std::size_t index = order_[position_];
    Submit(sim, recipes_[index], (*source().recorded)[index].stream);
    if (++position_ == order_.size()) {
      position_ = 0;
      round_ += steps_;
    }
    Schedule(sim);
  }

 private:
  // Step n of the replay begins n x `every` after the start.
  void Schedule(Simulation& sim) {
    const RecordedOperation& next = (*source().recorded)[order_[position_]];
    const Time at = began() + source().gap * (round_ + next.step) + next.released;
    sim.WakeAt(std::max(at, sim.now()), this);
  }

  std::vector<std::shared_ptr<const Recipe>> recipes_;
  std::vector<std::size_t> order_;  // by step and release
  std::size_t position_ = 0;
  std::uint32_t steps_ = 0;
  std::int64_t round_ = 0;
};

}  // namespace

SessionLoad::SessionLoad(const SessionSpec& spec, std::uint64_t seed)
    : spec_(spec), random_(seed) {}

std::unique_ptr<SessionLoad> SessionLoad::Start(Simulation& sim, const SessionSpec& spec,
                                                std::uint64_t seed, Time count_from, Time until) {
  std::unique_ptr<SessionLoad> load;
  switch (spec.source.kind) {
    case Kind::kClosedLoop: load = std::make_unique<ClosedLoop>(spec, seed); break;
    case Kind::kPeriodic:
    case Kind::kPoisson:
    case Kind::kGamma:
    case Kind::kWeibull: load = std::make_unique<Arrivals>(spec, seed); break;
    case Kind::kTrace: load = std::make_unique<TraceLoad>(spec, seed); break;
    case Kind::kReplay: load = std::make_unique<Replay>(spec, seed); break;
    case Kind::kSteps: load = std::make_unique<Steps>(spec, seed); break;
    case Kind::kWindows: load = std::make_unique<Windows>(spec, seed); break;
  }
  load->began_ = sim.now();
  load->count_from_ = count_from;
  load->until_ = until;
  load->session_ = sim.Open(spec.share);
  load->Begin(sim);
  return load;
}

void SessionLoad::SubmitNext(Simulation& sim, std::shared_ptr<const Recipe> recipe) {
  const std::uint32_t queue = next_queue_;
  next_queue_ = (next_queue_ + 1) % spec_.queues;
  Submit(sim, std::move(recipe), queue);
}

void SessionLoad::Submit(Simulation& sim, std::shared_ptr<const Recipe> recipe,
                         std::uint32_t queue) {
  JobOrder order;
  order.session = session_;
  order.recipe = std::move(recipe);
  if (source().cv_ppb > 0) {
    const std::int64_t stray = Multiply(source().cv_ppb, random_.Bell());
    order.scale_ppb = std::max(kOrdinaryScale + stray, kLeastScale);
  }
  if (spec_.share.latency_target > Duration(0)) {
    order.deadline = After(sim.now(), spec_.share.latency_target);
  }
  order.queue = queue;
  order.skip_if_late = spec_.skip_if_late;
  order.client = this;
  if (sim.now() >= count_from_) ++outcomes_.submitted;
  sim.Submit(order);
}

void SessionLoad::JobEnded(Simulation& sim, const core::Job& job, core::JobOutcome outcome,
                           const Status& refusal) {
  if (job.arrived >= count_from_) {
    if (!refusal.ok()) {
      ++outcomes_.refused;
    } else {
      switch (outcome) {
        case core::JobOutcome::kDone:
          ++outcomes_.done;
          if (job.last_end <= job.deadline) ++outcomes_.met;
          outcomes_.latencies.push_back(job.last_end - job.arrived);
          break;
        case core::JobOutcome::kCancelled: ++outcomes_.cancelled; break;
        case core::JobOutcome::kSkipped: ++outcomes_.skipped; break;
        case core::JobOutcome::kFailed: ++outcomes_.failed; break;
      }
    }
  }
  // Refused at once, a loop would submit again at once, for ever.
  if (refusal.ok()) Ended(sim);
}

}  // namespace gpusched::sim
