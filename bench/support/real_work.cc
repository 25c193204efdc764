// Four sides of two samples, each wrapped the same way.
#include "support/real_work.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <deque>
#include <string>
#include <utility>

#include "game_and_analytics/analytics.h"
#include "game_and_analytics/frames.h"
#include "recommendation/serving.h"
#include "recommendation/update.h"

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;

constexpr samples::Size kRequest{.alone = milliseconds(8), .launch = milliseconds(1)};
constexpr samples::Size kStep{.alone = milliseconds(50), .launch = milliseconds(25)};
constexpr samples::Size kFrame{.alone = milliseconds(10), .launch = milliseconds(1)};
constexpr samples::Size kAnalysis{.alone = milliseconds(300), .launch = milliseconds(25)};

// A load that says nothing of a job's end has no more than this outstanding.
constexpr std::size_t kMostOutstanding = 4;
// What else goes on in the machine only ever adds to a run, so the third shortest stands for all.
constexpr std::size_t kKernelTimeRuns = 11, kKernelTimeRank = 2;

// A job's own memory, and whether its results are in it.
template <typename Item>
struct Kept {
  Item item;
  bool answered = false;
};

// About `most` of the answered ones, evenly.
template <typename Item, typename IsRight>
Work::Checked CheckSome(const std::deque<Kept<Item>>& kept, std::size_t most, IsRight is_right) {
  Work::Checked checked;
  const std::size_t every = std::max<std::size_t>(1, kept.size() / most);
  for (std::size_t i = 0; i < kept.size(); i += every) {
    if (!kept[i].answered) continue;
    ++checked.compared;
    if (!is_right(kept[i].item)) ++checked.wrong;
  }
  return checked;
}

struct RecommendationData {
  recommendation::Catalogue catalogue = recommendation::RandomCatalogue(20'000, 2'000, /*seed=*/1);
  recommendation::Layers layers = recommendation::RandomLayers(/*seed=*/2);
};

const RecommendationData& TheRecommendationData() {
  static const RecommendationData data;
  return data;
}

struct RequestSide {
  using Item = recommendation::Request;
  // Checking one takes the CPU about as long as answering it.
  static constexpr std::size_t kChecked = 100;

  static auto Open(Session& session, const samples::Size& size) {
    const RecommendationData& data = TheRecommendationData();
    return recommendation::Serving::Open(session, data.catalogue, data.layers, size);
  }
  static std::size_t AmountOf(const recommendation::Serving& serving) {
    return serving.candidates();
  }
  static Result<Submission> Submit(recommendation::Serving& serving, std::size_t number, Item& item,
                                   const SubmitOptions& options) {
    const recommendation::Catalogue& catalogue = TheRecommendationData().catalogue;
    item.user = catalogue.user(number % catalogue.user_count());
    return serving.Submit(item, options);
  }
  static Work::Checked Check(const recommendation::Serving& serving,
                             const std::deque<Kept<Item>>& kept) {
    Work::Checked checked =
        CheckSome(kept, kChecked, [&](const Item& request) { return serving.IsRight(request); });
    checked.remark = std::to_string(serving.candidates()) + " candidates a request";
    return checked;
  }
};

struct StepSide {
  struct Item {};

  static auto Open(Session& session, const samples::Size& size) {
    return recommendation::Update::Open(session, TheRecommendationData().catalogue, size);
  }
  static std::size_t AmountOf(const recommendation::Update& update) { return update.rows(); }
  static Result<Submission> Submit(recommendation::Update& update, std::size_t, Item&,
                                   const SubmitOptions& options) {
    return update.Submit(options);
  }
  // Opening it has compared a whole step with the CPU's.
  static Work::Checked Check(const recommendation::Update& update, const std::deque<Kept<Item>>&) {
    char losses[64];
    std::snprintf(losses, sizeof losses, "loss %.4f, at the end %.4f", update.first_loss(),
                  update.last_loss());
    const bool fell = update.last_loss() < update.first_loss();
    return {.compared = 1, .wrong = fell ? 0u : 1u, .remark = losses};
  }
};

struct FrameSide {
  using Item = game::Frame;
  static constexpr std::size_t kChecked = 1'000;

  static auto Open(Session& session, const samples::Size& size) {
    return game::Frames::Open(session, size);
  }
  static std::size_t AmountOf(const game::Frames& frames) { return frames.tile_rows(); }
  static Result<Submission> Submit(game::Frames& frames, std::size_t number, Item& item,
                                   const SubmitOptions& options) {
    item.number = number;
    return frames.Submit(item, options);
  }
  static Work::Checked Check(const game::Frames& frames, const std::deque<Kept<Item>>& kept) {
    Work::Checked checked =
        CheckSome(kept, kChecked, [&](const Item& frame) { return frames.IsRight(frame); });
    checked.remark = "640 x " + std::to_string(frames.tile_rows() * game::kTile) + " pixels";
    return checked;
  }
};

struct AnalysisSide {
  using Item = game::Analysis;
  // One takes the CPU about a second.
  static constexpr std::size_t kChecked = 3;

  static auto Open(Session& session, const samples::Size& size) {
    return game::Analytics::Open(session, size);
  }
  static std::size_t AmountOf(const game::Analytics& analytics) { return analytics.points(); }
  static Result<Submission> Submit(game::Analytics& analytics, std::size_t number, Item& item,
                                   const SubmitOptions& options) {
    item.seed = static_cast<std::uint32_t>(number);
    return analytics.Submit(item, options);
  }
  static Work::Checked Check(const game::Analytics& analytics, const std::deque<Kept<Item>>& kept) {
    Work::Checked checked = CheckSome(
        kept, kChecked, [&](const Item& analysis) { return analytics.IsRight(analysis); });
    checked.remark = std::to_string(analytics.points()) + " points an analysis";
    return checked;
  }
};

template <typename Side, typename Service>
class Wrapped final : public Work {
 public:
  explicit Wrapped(std::unique_ptr<Service> service) : service_(std::move(service)) {}

  Result<Submission> Submit(Duration, const SubmitOptions& given) override {
    const std::size_t number = kept_.size();
    auto& kept = kept_.emplace_back();
    SubmitOptions options = given;
    if (given.on_done) {
      options.on_done = [&kept, told = given.on_done](const Result<JobReport>& report) {
        kept.answered = report.ok() && report->outcome == Outcome::kDone;
        told(report);
      };
    } else if (number >= kMostOutstanding) {
      kept_[number - kMostOutstanding].answered = true;
    }
    return Side::Submit(*service_, number, kept.item, options);
  }
  Duration KernelTime(Duration) const override { return kernel_time_; }
  Result<Checked> Check() override { return Side::Check(*service_, kept_); }

  void set_kernel_time(Duration time) { kernel_time_ = time; }

 private:
  std::unique_ptr<Service> service_;
  std::deque<Kept<typename Side::Item>> kept_;
  Duration kernel_time_{0};
};

// What the first one made finds out for the others.
struct Found {
  samples::Size size;
  Duration kernel_time{0};
};

template <typename Side>
MakeWork WorkOf(admin::AdminClient& admin, const samples::Size& size) {
  auto found = std::make_shared<Found>(Found{.size = size});
  return [&admin, found](Session& session) -> Result<std::unique_ptr<Work>> {
    auto service = Side::Open(session, found->size);
    if (!service.ok()) return service.status();
    found->size.amount = Side::AmountOf(**service);
    using Service = typename std::decay_t<decltype(*service)>::element_type;
    auto work = std::make_unique<Wrapped<Side, Service>>(*std::move(service));
    if (found->kernel_time == Duration::zero()) {
      const Result<Duration> kernel_time =
          KernelTimeAlone(admin, session, [&] { return work->Submit({}, {}); });
      if (!kernel_time.ok()) return kernel_time.status();
      found->kernel_time = *kernel_time;
    }
    work->set_kernel_time(found->kernel_time);
    return std::unique_ptr<Work>(std::move(work));
  };
}

Result<Duration> BusyOf(admin::AdminClient& admin, const Session& session) {
  const Result<std::vector<admin::Session>> sessions = admin.Sessions();
  if (!sessions.ok()) return sessions.status();
  for (const admin::Session& listed : *sessions) {
    if (listed.id == session.id()) return listed.busy;
  }
  return Status(StatusCode::kNotFound, reason::kUnknownSession,
                "the daemon no longer lists a session of this run; its log says why");
}

}  // namespace

Result<Duration> KernelTimeAlone(admin::AdminClient& admin, const Session& session,
                                 const std::function<Result<Submission>()>& submit) {
  std::array<Duration, kKernelTimeRuns> times{};
  Result<Duration> before = BusyOf(admin, session);
  for (Duration& time : times) {
    if (!before.ok()) return before.status();
    Result<Submission> job = submit();
    if (!job.ok()) return job.status();
    if (const Result<JobReport> report = job->Wait(); !report.ok()) return report.status();
    const Result<Duration> after = BusyOf(admin, session);
    if (!after.ok()) return after.status();
    time = *after - *before;
    before = after;
  }
  std::nth_element(times.begin(), times.begin() + kKernelTimeRank, times.end());
  return times[kKernelTimeRank];
}

RealWork RecommendationWork(admin::AdminClient& admin) {
  return {.requests = WorkOf<RequestSide>(admin, kRequest),
          .update = WorkOf<StepSide>(admin, kStep)};
}

RealWork GameWork(admin::AdminClient& admin) {
  return {.requests = WorkOf<FrameSide>(admin, kFrame),
          .update = WorkOf<AnalysisSide>(admin, kAnalysis)};
}

}  // namespace gpusched::bench
