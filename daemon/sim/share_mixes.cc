// Clients that keep a session busy as their mix says; mixes that are drawn, bad, or a step away.
#include "sim/share_mixes.h"

#include <algorithm>

#include "sim/checker.h"
#include "sim/share_windows.h"

namespace gpusched::sim {
namespace {

constexpr std::size_t kMostSessions = 64;
constexpr std::int32_t kGreatestWeight = 10'000;
constexpr std::uint64_t kBlocks = 256;
// More than a slice, what is in flight, and what was in flight before it.
constexpr Duration kBacklog = std::chrono::milliseconds(4);

// One session's client.
class Busy final : public Client {
 public:
  Busy(const MixSession& wanted, std::uint64_t kernel) : wanted_(wanted) {
    outstanding_ = static_cast<std::size_t>(wanted.outstanding);
    if (outstanding_ == 0) outstanding_ = static_cast<std::size_t>(kBacklog / wanted.job) + 2;
    auto recipe = std::make_shared<Recipe>();
    recipe->push_back(LaunchOf(wanted.job, kBlocks, kernel, wanted.cuttable));
    if (wanted.copies) {
      const auto bytes = static_cast<std::uint64_t>(wanted.job.count()) * 12;
      recipe->push_back({.operation = {.kind = core::Operation::Kind::kCopyIn,
                                       .cuttable = true,
                                       .extent = bytes,
                                       .estimate_key = kernel + 1'000},
                         .time = wanted.job});
    }
    recipe_ = std::move(recipe);
  }

  void Woken(Simulation& simulation) override {
    const Time now = simulation.now();
    if (!open_) {
      if (joined_) return;
      joined_ = open_ = true;
      id_ = simulation.Open(wanted_.share);
      leaves_at_ = wanted_.stays > Duration(0) ? now + wanted_.stays : kNever;
      if (leaves_at_ != kNever) simulation.WakeAt(leaves_at_, this);
    } else if (now >= leaves_at_) {
      open_ = working_ = false;
      simulation.Close(id_);
      return;
    }
    working_ ? Rest(simulation) : Work(simulation);
    if (wanted_.works > Duration(0)) simulation.WakeAt(now + wanted_.works, this);
  }
  void JobEnded(Simulation& simulation, const core::Job& job, core::JobOutcome,
                const Status&) override {
    std::erase(jobs_, job.id);
    if (working_) Submit(simulation);
  }

 private:
  void Work(Simulation& simulation) {
    working_ = true;
    while (jobs_.size() < outstanding_) Submit(simulation);
  }
  void Rest(Simulation& simulation) {
    if (wanted_.works == Duration(0)) return;
    working_ = false;
    for (const std::uint64_t job : jobs_) simulation.Cancel(id_, job);
  }
  void Submit(Simulation& simulation) {
    jobs_.push_back(simulation.Submit({.session = id_, .recipe = recipe_, .client = this}));
  }

  const MixSession wanted_;
  std::shared_ptr<const Recipe> recipe_;
  SessionId id_;
  std::size_t outstanding_ = 0;
  bool joined_ = false, open_ = false, working_ = false;
  Time leaves_at_ = kNever;
  std::vector<std::uint64_t> jobs_;
};

MixSession Plain(std::int32_t weight) {
  MixSession session;
  session.share.weight = weight;
  session.job = std::chrono::milliseconds(4);
  return session;
}

Mix HeavyBesideLight(std::string name, std::int32_t heavy) {
  Mix mix{.name = std::move(name), .sessions = {Plain(heavy)}};
  while (mix.sessions.size() < kMostSessions) mix.sessions.push_back(Plain(1));
  return mix;
}

// Bounds that leave everybody something: what admission would let in.
void DrawBounds(Share& share, Rate& min_left, Random& random) {
  if (random.Once(4)) share.max = random.Between(kWholeDevice / 50, kWholeDevice);
  if (!random.Once(4)) return;
  share.min = random.Between(0, std::min({share.max, min_left, kWholeDevice / 5}));
  share.strict = share.min > 0 && random.Once(3);
  min_left -= share.min;
}

MixSession DrawSession(Random& random, Duration length, bool uncuttable) {
  MixSession session;
  session.share.weight = static_cast<std::int32_t>(
      random.Once(2) ? random.Between(1, kGreatestWeight) : random.Between(1, 100));
  // Apart by a hundred times.
  session.job = Duration(random.Once(2) ? random.Between(100'000, 1'000'000)
                                        : random.Between(1'000'000, 10'000'000));
  session.cuttable = !uncuttable || random.Once(2);
  session.copies = random.Once(5);
  if (random.Once(3)) session.joins = random.Between(Duration(0), length / 2);
  if (random.Once(5)) session.stays = random.Between(length / 20, length / 2);
  if (random.Once(6)) session.works = random.Between(Duration(1'000'000), Duration(200'000'000));
  return session;
}

}  // namespace

bool Mix::cuttable() const {
  return std::all_of(sessions.begin(), sessions.end(),
                     [](const MixSession& session) { return session.cuttable; });
}

bool Mix::limited() const {
  return std::any_of(sessions.begin(), sessions.end(), [](const MixSession& session) {
    return session.share.max < kWholeDevice || session.share.strict;
  });
}

Mix DrawMix(Random& random, bool uncuttable) {
  Mix mix;
  mix.name = "drawn";
  mix.seed = random.Next();
  const std::uint64_t count = random.Once(4) ? 2 + random.Below(63) : 2 + random.Below(15);
  Rate min_left = kWholeDevice;
  for (std::uint64_t i = 0; i < count; ++i) {
    mix.sessions.push_back(DrawSession(random, mix.length, uncuttable));
    DrawBounds(mix.sessions.back().share, min_left, random);
  }
  return mix;
}

std::vector<Mix> BadMixes() {
  std::vector<Mix> mixes = {HeavyBesideLight("one of weight 99 beside 63 of weight 1", 99),
                            HeavyBesideLight("one of weight 10,000 beside 63 of weight 1", 10'000)};
  Mix join{.name = "63 join one at once", .sessions = {Plain(100)}};
  while (join.sessions.size() < kMostSessions) {
    join.sessions.push_back(Plain(100));
    join.sessions.back().joins = std::chrono::milliseconds(200);
  }
  Mix leave{.name = "leave in debt", .sessions = {Plain(1'000), Plain(10)}};
  for (int i = 0; i < 30; ++i) {
    leave.sessions.push_back(Plain(1));
    leave.sessions.back().joins = std::chrono::milliseconds(20 * i);
    leave.sessions.back().stays = std::chrono::milliseconds(30);
  }
  Mix flip{.name = "flip between work and none every 3 ms", .sessions = {Plain(100), Plain(300)}};
  for (int i = 0; i < 8; ++i) {
    flip.sessions.push_back(Plain(100 + 50 * i));
    flip.sessions.back().works = std::chrono::milliseconds(3);
    flip.sessions.back().joins = std::chrono::microseconds(700 * i);
  }
  Mix floors;
  floors.name = "mins sum to 1";
  for (int i = 0; i < 5; ++i) {
    floors.sessions.push_back(Plain(i == 0 ? 10'000 : 1));
    floors.sessions.back().share.min = kWholeDevice / 5;
  }
  Mix ceilings;
  ceilings.name = "maxes sum to less than 1";
  for (int i = 0; i < 6; ++i) {
    ceilings.sessions.push_back(Plain(1 + 100 * i));
    ceilings.sessions.back().share.max = kWholeDevice / 8;
  }
  mixes.insert(mixes.end(), {join, leave, flip, floors, ceilings});
  return mixes;
}

Mix Neighbour(const Mix& mix, Random& random) {
  Mix next = mix;
  next.name = "climbed from " + (mix.name.starts_with("climbed") ? mix.name.substr(13) : mix.name);
  next.seed = random.Next();
  MixSession& session = next.sessions[random.Below(next.sessions.size())];
  switch (random.Below(6)) {
    case 0:
      session.share.weight =
          static_cast<std::int32_t>(random.Between(1, random.Once(2) ? 20 : kGreatestWeight));
      break;
    case 1: session.job = Duration(random.Between(100'000, 10'000'000)); break;
    case 2: session.joins = random.Between(Duration(0), next.length / 2); break;
    case 3:
      session.works =
          random.Once(2) ? Duration(0) : random.Between(Duration(1'000'000), Duration(50'000'000));
      break;
    case 4:
      if (next.sessions.size() < kMostSessions) next.sessions.push_back(session);
      break;
    case 5:
      if (next.sessions.size() > 2) next.sessions.pop_back();
      break;
  }
  return next;
}

ShareError Measure(const Mix& mix, std::unique_ptr<Policy> policy, const core::PolicySpec& spec,
                   bool steady) {
  SimulationOptions options;
  options.policy = spec;
  options.seed = mix.seed;
  if (steady) options.costs.outlier_ppb = 0;
  Checker checker({.limits = options.limits,
                   .preemption_bound = options.traits.preemption_bound,
                   .shortest_useful_chunk = options.traits.shortest_useful_chunk,
                   .policy = spec,
                   .share_rule = policy->share_rule()});
  ShareWindows windows(checker);
  std::vector<std::unique_ptr<Busy>> clients;
  Simulation simulation(options, std::move(policy));
  simulation.AddObserver(&checker);
  simulation.AddObserver(&windows);
  for (const MixSession& session : mix.sessions) {
    clients.push_back(std::make_unique<Busy>(session, clients.size() + 1));
    simulation.WakeAt(Simulation::kStart + session.joins, clients.back().get());
  }
  simulation.RunUntil(Simulation::kStart + mix.length);
  ShareError error = windows.error();
  error.commands = checker.commands();
  error.violations = checker.violations();
  return error;
}

}  // namespace gpusched::sim
