// A history out of random numbers.
#include "sim/crowd.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace gpusched::sim {
namespace {

constexpr std::size_t kMostSessions = 12;

struct HazardName {
  std::string_view name;
  bool Hazards::*there;
};
constexpr HazardName kHazards[] = {
    {"slow", &Hazards::slow},
    {"stuck", &Hazards::stuck},
    {"failing", &Hazards::failing},
    {"lost", &Hazards::lost},
    {"reordering", &Hazards::reordering},
    {"interruptible", &Hazards::interruptible},
    {"late_news", &Hazards::late_news},
    {"vanishing", &Hazards::vanishing},
    {"cancelling", &Hazards::cancelling},
    {"changing", &Hazards::changing},
    {"many_queues", &Hazards::many_queues},
    {"malformed", &Hazards::malformed},
    {"deadlines", &Hazards::deadlines},
    {"skipping", &Hazards::skipping},
    {"wrong_estimates", &Hazards::wrong_estimates},
    {"uncuttable", &Hazards::uncuttable},
    {"copies", &Hazards::copies},
    {"closed_loops", &Hazards::closed_loops},
    {"capped", &Hazards::capped},
    {"floors", &Hazards::floors},
    {"strict", &Hazards::strict},
    {"priorities", &Hazards::priorities},
    {"targets", &Hazards::targets},
    {"pausing", &Hazards::pausing},
    {"swapping", &Hazards::swapping},
    {"nonsense", &Hazards::nonsense},
    {"hesitant", &Hazards::hesitant},
    {"resetting", &Hazards::resetting},
    {"tight", &Hazards::tight},
};

}  // namespace

// A third of the histories has few hazards, a third many: what one hides another shows.
Hazards Hazards::Draw(Random& random) {
  Hazards hazards;
  const std::uint64_t of_ten = 1 + random.Below(6);
  for (const HazardName& hazard : kHazards) hazards.*hazard.there = random.Below(10) < of_ten;
  hazards.lost = hazards.lost || hazards.stuck;  // nothing else ends a stuck command
  // What can be stopped can be cut.
  hazards.uncuttable = hazards.uncuttable && !hazards.interruptible;
  hazards.deadlines = hazards.deadlines || hazards.skipping;
  return hazards;
}

std::string Hazards::Text() const {
  std::string text;
  for (const HazardName& hazard : kHazards) {
    if (!(this->*hazard.there)) continue;
    if (!text.empty()) text += ' ';
    text += hazard.name;
  }
  return text;
}

std::pair<std::string, std::string> Crowd::DrawPolicy(const Hazards& hazards, Random& random) {
  if (hazards.nonsense && random.Once(4)) return {"nonsense", ""};
  if (hazards.hesitant && random.Once(4)) return {"hesitant", ""};
  switch (random.Below(3)) {
    case 0: return {"round_robin", random.Once(3) ? "slice=300us" : ""};
    case 1: return {"weighted_share", random.Once(3) ? "slice=2ms" : ""};
    default: return {"preemptive_priority", random.Once(3) ? "starvation_bound=20ms" : ""};
  }
}

Crowd::Crowd(const Hazards& hazards, Random random, Simulation& simulation, PolicyMaker maker)
    : hazards_(hazards), random_(random), simulation_(simulation), make_policy_(std::move(maker)) {
  left_ = 150 + random_.Below(350);
  pause_between_ = Duration(random_.Between(20'000, 2'000'000));
  submits_in_ten_ = 3 + random_.Below(6);
  rare_ = 10 + random_.Below(200);
  min_left_ = kWholeDevice;
  simulation_.SetFate(
      [this](Time, const core::StartCommand& order, Fate& fate) { Decide(order, fate); });
}

void Crowd::Begin() {
  const std::uint64_t first = 1 + random_.Below(kMostSessions / 2);
  for (std::uint64_t i = 0; i < first; ++i) OpenOne();
  simulation_.WakeAt(simulation_.now(), this);
}

void Crowd::Woken(Simulation&) {
  if (left_ == 0) return;
  Happen();
  --left_;
  const Duration pause = random_.Scaled(pause_between_, random_.Exponential());
  simulation_.WakeAt(simulation_.now() + std::min(pause, 20 * pause_between_), this);
}

Crowd::Member* Crowd::Any() {
  return members_.empty() ? nullptr : &members_[random_.Below(members_.size())];
}

void Crowd::Happen() {
  Member* member = Any();
  if (member == nullptr) return OpenOne();
  if (random_.Below(10) < submits_in_ten_) return SubmitFrom(*member);
  switch (random_.Below(11)) {
    case 0:
    case 1:
      if (members_.size() < kMostSessions) OpenOne();
      return;
    case 2:
      if (!hazards_.vanishing) return;
      simulation_.Close(member->id);
      member->open = false;
      members_.erase(members_.begin() + (member - members_.data()));
      return;
    case 3:
      if (!hazards_.cancelling || member->jobs.empty()) return;
      simulation_.Cancel(member->id, member->jobs[random_.Below(member->jobs.size())]);
      return;
    case 4:
      if (hazards_.changing) simulation_.Change(member->id, DrawShare());
      return;
    case 5:
      if (!hazards_.pausing) return;
      member->paused = !member->paused;
      member->paused ? simulation_.Pause(member->id) : simulation_.Resume(member->id);
      return;
    case 6:
    case 7: {
      if (!hazards_.swapping) return;
      const auto [kind, parameters] = DrawPolicy(hazards_, random_);
      simulation_.SetPolicy(kind, parameters, make_policy_(kind, parameters));
      return;
    }
    case 8:
      if (hazards_.resetting) {
        simulation_.SetPreemptionBound(Duration(random_.Between(100'000, 4'000'000)));
      }
      return;
    case 9:
    case 10:
      if (!hazards_.lost || (!lost_ && random_.Once(2))) return;
      lost_ = !lost_;
      lost_ ? simulation_.LoseDevice() : simulation_.RestoreDevice();
      return;
  }
}

Share Crowd::DrawShare() {
  Share share;
  share.weight = static_cast<std::int32_t>(random_.Once(3) ? random_.Between(1, 10'000)
                                                           : random_.Between(50, 200));
  if (hazards_.priorities) share.priority = static_cast<std::int32_t>(random_.Between(-3, 3));
  if (hazards_.targets && random_.Once(2)) {
    share.latency_target = Duration(random_.Between(2'000'000, 100'000'000));
  }
  if (hazards_.capped && random_.Once(3)) {
    share.max = random_.Between(kWholeDevice / 20, kWholeDevice * 9 / 10);
  }
  // Never more in all than there is: this is what admission keeps out. What was given stays given.
  if (hazards_.floors && random_.Once(3)) {
    const Rate most = std::min({share.max, min_left_, kWholeDevice / 4});
    share.min = random_.Between(0, most);
    share.strict = hazards_.strict && share.min > 0 && random_.Once(2);
    min_left_ -= share.min;
  }
  return share;
}

void Crowd::OpenOne() {
  Member member;
  member.id = simulation_.Open(DrawShare());
  member.time = Duration(random_.Once(2) ? random_.Between(20'000, 1'000'000)
                                         : random_.Between(1'000'000, 20'000'000));
  if (hazards_.closed_loops && random_.Once(2)) {
    member.outstanding = static_cast<std::uint32_t>(1 + random_.Below(3));
  }
  members_.push_back(member);
  const std::uint32_t outstanding = member.outstanding;
  for (std::uint32_t i = 0; i < outstanding; ++i) SubmitFrom(members_.back());
}

std::shared_ptr<const Recipe> Crowd::DrawRecipe(const Member& member) {
  auto recipe = std::make_shared<Recipe>();
  const std::uint64_t operations = 1 + random_.Below(random_.Once(3) ? 6 : 2);
  for (std::uint64_t i = 0; i < operations; ++i) {
    const bool cuttable = !hazards_.uncuttable || random_.Once(2);
    // A kernel of a name takes the same time per block, but where estimates are to be wrong.
    const std::uint64_t kernel = random_.Below(3);
    Duration time = member.time * static_cast<std::int64_t>(kernel + 1) / 3;
    if (hazards_.wrong_estimates && random_.Once(6)) {
      time = random_.Once(2) ? time * 100 : time / 100;
    }
    time = std::min<Duration>(time, std::chrono::milliseconds(400));
    if (hazards_.copies && random_.Once(4)) {
      Work copy{.operation = {.kind = core::Operation::Kind::kCopyIn,
                              .cuttable = true,
                              .extent = 1 + random_.Below(8'000'000),
                              .estimate_key = 1'000},
                .time = {}};
      copy.time = Duration(static_cast<std::int64_t>(copy.operation.extent / 12));
      recipe->push_back(copy);
      continue;
    }
    recipe->push_back(LaunchOf(time, 200, kernel * 2 + cuttable, cuttable));
  }
  if (hazards_.malformed && random_.Once(20)) recipe->front().operation.extent = 0;
  if (hazards_.malformed && random_.Once(20)) recipe->clear();
  return recipe;
}

void Crowd::SubmitFrom(Member& member) {
  JobOrder order;
  order.session = member.id;
  order.recipe = DrawRecipe(member);
  order.client = this;
  if (hazards_.many_queues) order.queue = static_cast<std::uint32_t>(random_.Below(4));
  if (hazards_.malformed && random_.Once(30)) order.queue = 64 + random_.Once(2);
  if (hazards_.deadlines && random_.Once(2)) {
    order.deadline = simulation_.now() + Duration(random_.Between(100'000, 60'000'000));
    order.skip_if_late = hazards_.skipping && random_.Once(2);
  }
  member.jobs.push_back(simulation_.Submit(order));
  constexpr std::size_t kRemembered = 16;
  if (member.jobs.size() > kRemembered) member.jobs.erase(member.jobs.begin());
}

void Crowd::JobEnded(Simulation&, const core::Job& job, core::JobOutcome, const Status& refusal) {
  if (left_ == 0 || !refusal.ok()) return;
  for (Member& member : members_) {
    if (member.id == job.session && member.outstanding > 0) return SubmitFrom(member);
  }
}

void Crowd::Decide(const core::StartCommand&, Fate& fate) {
  if (left_ == 0) return;
  if (hazards_.slow && random_.Once(rare_)) fate.work *= random_.Between(2, 50);
  if (hazards_.failing && random_.Once(rare_)) fate.fails = true;
  if (hazards_.stuck && random_.Once(4 * rare_)) fate.stuck = true;
}

void Crowd::Settle() {
  left_ = 0;
  if (hazards_.lost && !lost_) simulation_.LoseDevice();
  if (hazards_.lost) simulation_.RestoreDevice();
  lost_ = false;
  for (const Member& member : members_) {
    if (member.paused) simulation_.Resume(member.id);
  }
}

void Crowd::CloseAll() {
  for (const Member& member : members_) simulation_.Close(member.id);
  members_.clear();
}

}  // namespace gpusched::sim
