// Clients that keep a session busy as their mix says, and a meter that reads every window.
#include "sim/share_mixes.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "sim/checker.h"

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

// Reads the lag of everybody at the end of every slice.
class Windows final : public Observer {
 public:
  explicit Windows(const Checker& checker) : checker_(checker) {}

  void OnAction(Time, const core::Action& action) override {
    if (const auto* start = std::get_if<core::StartCommand>(&action)) {
      in_flight_[start->ticket] = {.slot = start->session.slot};
      NoteUnmeasured(*start);
    }
    const auto* record = std::get_if<core::RecordSlice>(&action);
    if (record == nullptr) return;
    slice_ended_ = true;
    error_.longest = std::max({error_.longest, record->slice.granted, record->slice.charged});
  }
  void OnEvent(Time, const core::Event& event) override {
    if (const auto* opened = std::get_if<core::SessionOpened>(&event)) {
      const std::uint32_t slot = opened->session.slot;
      if (slot >= strict_.size()) strict_.resize(slot + 1);
      strict_[slot] = opened->share.strict;
    }
    const auto* finished = std::get_if<core::CommandFinished>(&event);
    if (finished == nullptr) return;
    const Duration took = finished->ended - finished->started;
    error_.longest = std::max(error_.longest, took);
    NoteUnderWay(*finished);
    const auto found = unmeasured_.find(finished->ticket);
    if (found == unmeasured_.end()) return;
    longest_whole_ = std::max(longest_whole_, took);
    measured_.insert(found->second);
    unmeasured_.erase(found);
    for (Track& track : tracks_) track.besides += static_cast<double>(took.count());
  }
  void AfterStep(Time now, const core::Scheduler&) override {
    const ShareMeter& meter = checker_.shares();
    if (meter.slots() > tracks_.size()) tracks_.resize(meter.slots());
    FollowPar(meter, now);
    for (std::uint32_t slot = 0; slot < tracks_.size(); ++slot) {
      Track& track = tracks_[slot];
      if (!meter.open(slot) || !meter.has_work(slot)) {
        track.samples.clear();
        track.tenth = 0;
        track.moved = track.besides = 0;
      } else if (slice_ended_ || track.samples.empty()) {
        Sample(track, now, meter.Lag(slot) - meter.Spread(slot));
      }
    }
    slice_ended_ = false;
  }
  const ShareError& error() const { return error_; }

 private:
  struct Reading {
    Time at;
    double lag;
    double under_way;
  };
  struct InFlight {
    std::uint32_t slot = 0;
    Time came = kNever;  // when, since it was ordered, somebody first came
  };
  // Since a session has had work without a break.
  struct Track {
    std::deque<Reading> samples;  // of the last second and the one before
    std::size_t tenth = 0;        // the last that is a tenth of a second old
    double least = 0, most = 0;
    double moved = 0;  // how far par has moved for it in all
    // What commands in one piece took of which nobody knew the length, and what all may save up
    // each time a strict session rests.
    double besides = 0;
    double under_way = 0;  // what it lost or got by commands under way when somebody came
    double spread = 0;     // of its lag, what others left it
    double rate = 0;       // in the latest step; 0: it had no work
    double lag = 0;
  };
  struct Par {
    double lags = 0, rates = 0;
    double For(double rate) const { return rates > 0 ? lags * rate / rates : 0; }
  };

  // When one comes, goes or is changed, par is another for everybody. One that closes gives its lag
  // away, too.
  void FollowPar(const ShareMeter& meter, Time now) {
    bool changed = false, came = false;
    resting_ = false;
    for (std::uint32_t slot = 0; slot < tracks_.size(); ++slot) {
      if (strict_[slot] && meter.open(slot) && !meter.has_work(slot)) resting_ = true;
      if (Rate(meter, slot) != tracks_[slot].rate) changed = true;
      if (Rate(meter, slot) > 0 && tracks_[slot].rate <= 0) came = true;
      if (Rate(meter, slot) <= 0 && tracks_[slot].rate > 0 && strict_[slot]) NoteRest();
    }
    for (auto& [ticket, flight] : in_flight_) {
      if (came && flight.came == kNever) flight.came = now;
    }
    if (changed) {
      Par before, after;
      for (std::uint32_t slot = 0; slot < tracks_.size(); ++slot) {
        const double lag = meter.open(slot) ? meter.Lag(slot) : tracks_[slot].lag;
        if (tracks_[slot].rate > 0) before = {before.lags + lag, before.rates + tracks_[slot].rate};
        const double rate = Rate(meter, slot);
        if (rate > 0) after = {after.lags + lag, after.rates + rate};
      }
      for (std::uint32_t slot = 0; slot < tracks_.size(); ++slot) {
        Track& track = tracks_[slot];
        const double rate = Rate(meter, slot);
        if (rate <= 0) continue;
        const double lag = meter.Lag(slot);
        track.moved += track.rate > 0 ? std::abs(after.For(rate) - before.For(track.rate))
                                      : std::abs(lag - after.For(rate));
      }
    }
    for (std::uint32_t slot = 0; slot < tracks_.size(); ++slot) {
      tracks_[slot].rate = Rate(meter, slot);
      tracks_[slot].moved += std::abs(meter.Spread(slot) - tracks_[slot].spread);
      tracks_[slot].spread = meter.Spread(slot);
      if (meter.open(slot)) tracks_[slot].lag = meter.Lag(slot);
    }
  }
  static double Rate(const ShareMeter& meter, std::uint32_t slot) {
    return meter.open(slot) && meter.has_work(slot) ? meter.rate(slot) : 0;
  }

  // Nobody can take it back, and its session has what the others ask for meanwhile.
  void NoteUnderWay(const core::CommandFinished& finished) {
    const auto found = in_flight_.find(finished.ticket);
    if (found == in_flight_.end()) return;
    const InFlight flight = found->second;
    in_flight_.erase(found);
    const Time from = std::max(flight.came, finished.started);
    if (flight.came == kNever || from >= finished.ended) return;
    double rates = 0;
    for (const Track& track : tracks_) rates += track.rate;
    if (rates <= 0) return;
    const auto rest = static_cast<double>((finished.ended - from).count());
    for (std::uint32_t slot = 0; slot < tracks_.size(); ++slot) {
      const double part = tracks_[slot].rate / rates;
      tracks_[slot].under_way += rest * (slot == flight.slot ? 1 - part : part);
    }
  }
  void NoteRest() {
    for (Track& track : tracks_) track.besides += SavedUp();
  }
  double SavedUp() const {
    return static_cast<double>((core::Limits{}.idle_burst + 2 * longest_whole_).count());
  }
  void NoteUnmeasured(const core::StartCommand& start) {
    const core::Operation& operation = start.job->operations[start.operation];
    if (!operation.cuttable && !measured_.contains(operation.estimate_key)) {
      unmeasured_[start.ticket] = operation.estimate_key;
    }
  }

  void Sample(Track& track, Time now, double lag) {
    if (track.samples.empty()) {
      track.least = track.most = lag;
      if (resting_) track.besides += SavedUp();
    }
    track.least = std::min(track.least, lag);
    track.most = std::max(track.most, lag);
    const double furthest = track.most - track.least;
    error_.furthest = std::max(error_.furthest, Duration(static_cast<std::int64_t>(furthest)));
    error_.unmoved =
        std::max(error_.unmoved,
                 Duration(static_cast<std::int64_t>(furthest - 2 * track.moved - track.besides)));
    track.samples.push_back({now, lag, track.under_way});
    constexpr Duration kTenth = std::chrono::milliseconds(100), kSecond = std::chrono::seconds(1);
    auto& samples = track.samples;
    while (samples.size() > 1 && now - samples[1].at >= kSecond) {
      samples.pop_front();
      if (track.tenth > 0) --track.tenth;
    }
    while (track.tenth + 1 < samples.size() && now - samples[track.tenth + 1].at >= kTenth) {
      ++track.tenth;
    }
    Judge(samples.front(), samples.back(), kSecond, error_.over_second);
    Judge(samples[track.tenth], samples.back(), kTenth, error_.over_tenth);
    Reading helped = samples.back();
    const double under_way = helped.under_way - samples.front().under_way;
    const double off = helped.lag - samples.front().lag;
    helped.lag = samples.front().lag + std::max(0.0, std::abs(off) - under_way);
    Judge(samples.front(), helped, kSecond, error_.helped_second);
  }
  static void Judge(const Reading& from, const Reading& to, Duration least, double& worst) {
    if (to.at - from.at < least) return;
    const auto window = static_cast<double>((to.at - from.at).count());
    worst = std::max(worst, std::abs(to.lag - from.lag) / window);
  }

  const Checker& checker_;
  bool slice_ended_ = false;
  std::vector<Track> tracks_;  // by slot
  std::vector<bool> strict_;   // by slot
  bool resting_ = false;       // a strict session
  Duration longest_whole_{0};
  // Kernels in one piece that have been measured, and commands of others in flight.
  std::set<std::uint64_t> measured_;
  std::map<core::Ticket, std::uint64_t> unmeasured_;
  std::map<core::Ticket, InFlight> in_flight_;
  ShareError error_;
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
  Windows windows(checker);
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
