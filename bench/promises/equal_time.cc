// Two sessions under round_robin, one with launches a hundred times as long as the other's.
#include <algorithm>

#include "gpusched/units.h"
#include "promises/stage.h"
#include "promises/table.h"
#include "promises/windows.h"
#include "round_robin.h"

namespace gpusched::bench {
namespace {

constexpr seconds kWindow{2};
constexpr milliseconds kSlice{1};
constexpr microseconds kShortLaunch{200};
constexpr milliseconds kLongLaunch{20};

struct Apart {
  double points = 0;       // the short one's share of a window, from 50 %
  nanoseconds time{0};     // between the two
  nanoseconds longest{0};  // command that could not be cut, as operators are shown it
};

Result<Apart> FurthestApart(Stage& stage, bool cuttable, seconds length) {
  Result<std::unique_ptr<Worker>> quick = stage.Open("short", {});
  if (!quick.ok()) return quick.status();
  Result<std::unique_ptr<Worker>> slow = stage.Open("long", {});
  if (!slow.ok()) return slow.status();
  Result<std::unique_ptr<LedgerRecorder>> recorder = LedgerRecorder::Start(stage.admin());
  if (!recorder.ok()) return recorder.status();
  if (Status status = (*quick)->KeepBusy({.each = kShortLaunch, .cuttable = cuttable});
      !status.ok()) {
    return status;
  }
  if (Status status = (*slow)->KeepBusy({.each = kLongLaunch, .cuttable = cuttable});
      !status.ok()) {
    return status;
  }
  const nanoseconds from = DaemonNow(), to = from + length;
  WaitUntil(to);
  const Result<Ledger> ledger = LedgerUpTo(**recorder, to);
  if (!ledger.ok()) return ledger.status();
  const Result<std::vector<admin::Session>> sessions = stage.admin().Sessions();
  if (!sessions.ok()) return sessions.status();
  Apart furthest;
  for (const admin::Session& session : *sessions) {
    furthest.longest = std::max(furthest.longest, session.longest_uncuttable);
  }
  ForEachWindow(*ledger, from, to, kWindow, [&](nanoseconds begin, nanoseconds end) {
    const nanoseconds a = ledger->Charged((*quick)->id(), begin, end);
    const nanoseconds b = ledger->Charged((*slow)->id(), begin, end);
    const nanoseconds apart = a > b ? a - b : b - a;
    furthest.time = std::max(furthest.time, apart);
    furthest.points = std::max(furthest.points, 50.0 * static_cast<double>(apart.count()) /
                                                    static_cast<double>((a + b).count()));
  });
  return furthest;
}

}  // namespace

Result<Measurement> MeasureEqualTime(Length length) {
  const seconds each = length == Length::kFull ? seconds(20) : seconds(5);
  Result<std::unique_ptr<Stage>> stage = Stage::Raise({.flags = {"--policy=round_robin"}});
  if (!stage.ok()) return stage.status();
  const Result<Apart> cuttable = FurthestApart(**stage, true, each);
  if (!cuttable.ok()) return cuttable.status();
  const Result<Apart> whole = FurthestApart(**stage, false, each);
  if (!whole.ok()) return whole.status();
  const Duration bound = RoundRobin::FurthestApart(2, kSlice, whole->longest);
  return Measurement{
      .figures = {AtMost("0.2 ms beside 20 ms, cuttable: off 50 %, worst 2 s", cuttable->points,
                         "points", 1),
                  AtMost("the same, uncuttable: apart, worst 2 s", Milliseconds(whole->time), "ms",
                         Milliseconds(bound))},
      .not_run = {},
      .remark = "the longest uncuttable command took " + FormatDuration(whole->longest)};
}

}  // namespace gpusched::bench
