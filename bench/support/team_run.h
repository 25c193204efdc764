// A team training on one device: three endless sessions, and what each got of a window.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctl/admin_client.h"
#include "gpusched/client.h"
#include "support/endless.h"
#include "support/work.h"

namespace team {
class Trainer;
}  // namespace team

namespace gpusched::bench {

struct TeamMember {
  std::string name;
  int weight = 100;
  std::uint64_t memory = 0;
};
// 70/20/10 of the time; the paper with the deadline has 80 % of the memory.
inline constexpr std::size_t kTeamSize = 3;
const std::array<TeamMember, kTeamSize>& TheTeam();

// Of one member in one window.
struct MemberFigures {
  std::string name;
  std::size_t steps = 0;
  std::optional<double> asked;  // of the device's time; empty where the policy promises none
  double got = 0;
  std::uint64_t slices = 0;
};

class TeamRun {
 public:
  // Opens the sessions one after the other, each alone on the device, fills their memory with data
  // and starts to train.
  static Result<std::unique_ptr<TeamRun>> Start(const std::string& endpoint);
  ~TeamRun();

  Status BeginWindow(admin::AdminClient& admin);
  Result<std::array<MemberFigures, kTeamSize>> EndWindow(admin::AdminClient& admin);

  // Asks for one byte more than each member has left, while all train; how many were refused for
  // that reason.
  std::size_t BytesTooManyRefused();
  // Ends the training; what each member's results were like.
  Result<std::array<Work::Checked, kTeamSize>> Finish();

 private:
  struct Member;
  struct Accounts;
  TeamRun();
  Result<Accounts> Read(admin::AdminClient& admin) const;

  std::array<std::unique_ptr<Member>, kTeamSize> members_;
  std::unique_ptr<Accounts> begin_;
};

}  // namespace gpusched::bench
