// Three trainings on one OpenCL device, with shares and memory as each asked for.
#include <algorithm>
#include <cmath>
#include <thread>

#include "promises/no_platform.h"
#include "promises/table.h"
#include "support/team_run.h"

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kSettle{1};

}  // namespace

Result<Measurement> MeasureTeam(Length length) {
  Result<std::unique_ptr<RealStage>> stage = RealStage::Raise();
  if (!stage.ok()) return NotRun(stage.status());
  if (Status status = (*stage)->SetBound(kDefaultBound); !status.ok()) return status;
  admin::AdminClient& admin = (*stage)->admin();
  if (const auto set = admin.SetPolicy({.kind = "weighted_share"}); !set.ok()) return set.status();
  Result<std::unique_ptr<TeamRun>> team = TeamRun::Start((*stage)->daemon().endpoint());
  if (!team.ok()) return team.status();

  const int windows = length == Length::kFull ? 3 : 1;
  double worst = 0, refused = 0;
  std::string remark;
  std::size_t fewest_steps = SIZE_MAX;
  for (int window = 0; window < windows; ++window) {
    std::this_thread::sleep_for(kSettle);
    if (Status status = (*team)->BeginWindow(admin); !status.ok()) return status;
    std::this_thread::sleep_for(seconds(5));
    // In the middle of a window: whoever notices would have a smaller share, or an error.
    refused = static_cast<double>((*team)->BytesTooManyRefused());
    std::this_thread::sleep_for(seconds(5));
    const auto figures = (*team)->EndWindow(admin);
    if (!figures.ok()) return figures.status();
    for (std::size_t i = 0; i < kTeamSize; ++i) {
      const MemberFigures& member = (*figures)[i];
      worst = std::max(worst, std::abs(100 * member.got - TheTeam()[i].weight));
      fewest_steps = std::min(fewest_steps, member.steps);
      char text[128];
      std::snprintf(text, sizeof text, "%s: asked %d %%, got %.2f %%, %zu steps\n",
                    member.name.c_str(), TheTeam()[i].weight, 100 * member.got, member.steps);
      remark += text;
    }
  }
  const auto results = (*team)->Finish();
  if (!results.ok()) return results.status();
  double wrong = 0;
  for (std::size_t i = 0; i < kTeamSize; ++i) {
    wrong += static_cast<double>((*results)[i].wrong);
    remark += TheTeam()[i].name + ": " + (*results)[i].remark + "\n";
  }
  return Measurement{
      .figures = {AtMost("70/20/10, worst of a 10 s window", worst, "points", 1.5),
                  AtLeast("a byte too many, refused while all train", refused, "",
                          static_cast<double>(kTeamSize)),
                  AtLeast("steps of the slowest", static_cast<double>(fewest_steps), "", 10),
                  AtMost("steps that differ from the CPU's, or losses that do not fall", wrong, "",
                         0)},
      .not_run = {},
      .remark = remark};
}

}  // namespace gpusched::bench
