// Clients, operators and a device that do what a seed drew for them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/random.h"
#include "sim/simulation.h"

namespace gpusched::sim {

// What may happen in one history. Drawn first; how often is drawn second.
struct Hazards {
  static Hazards Draw(Random&);
  std::string Text() const;

  // Of the device.
  bool slow = false, stuck = false, failing = false, lost = false, reordering = false,
       interruptible = false, late_news = false;
  // Of clients.
  bool vanishing = false, cancelling = false, changing = false, many_queues = false,
       malformed = false, deadlines = false, skipping = false, wrong_estimates = false,
       uncuttable = false, copies = false, closed_loops = false;
  // Of shares.
  bool capped = false, floors = false, strict = false, priorities = false, targets = false;
  // Of operators.
  bool pausing = false, swapping = false, nonsense = false, hesitant = false, resetting = false;
  // Of the core: limits as low as they go.
  bool tight = false;
};

class Crowd final : public Client {
 public:
  using PolicyMaker = std::function<std::unique_ptr<Policy>(const std::string& kind,
                                                            const std::string& parameters)>;

  // Everything outlives the simulation's runs.
  Crowd(const Hazards&, Random, Simulation&, PolicyMaker);

  void Begin();  // from now on something happens until it has happened often enough
  bool done() const { return left_ == 0; }
  // Nothing new happens, and everything that was broken is set right.
  void Settle();
  void CloseAll();

  void Woken(Simulation&) override;
  void JobEnded(Simulation&, const core::Job&, core::JobOutcome, const Status& refusal) override;

  // A policy and its parameters, by name.
  static std::pair<std::string, std::string> DrawPolicy(const Hazards&, Random&);

 private:
  struct Member {
    SessionId id;
    Duration time{0};               // of its jobs
    std::uint32_t outstanding = 0;  // kept so many; 0: an open loop
    bool open = true, paused = false;
    std::vector<std::uint64_t> jobs;  // the latest
  };

  void Happen();
  void OpenOne();
  void SubmitFrom(Member&);
  std::shared_ptr<const Recipe> DrawRecipe(const Member&);
  Share DrawShare();
  void Decide(const core::StartCommand&, Fate&);
  Member* Any();

  const Hazards hazards_;
  Random random_;
  Simulation& simulation_;
  const PolicyMaker make_policy_;
  std::vector<Member> members_;
  std::uint64_t left_ = 0;
  Duration pause_between_{0};
  std::uint64_t submits_in_ten_ = 0;
  std::uint64_t rare_ = 0;  // a fault comes once in so many commands
  Rate min_left_ = 0;
  bool lost_ = false;
};

}  // namespace gpusched::sim
