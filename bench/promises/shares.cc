// What each session got in every second beside what hand arithmetic says it should have got.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "promises/stage.h"
#include "promises/table.h"
#include "promises/windows.h"

namespace gpusched::bench {
namespace {

constexpr seconds kWindow{1};
constexpr microseconds kLaunch{1'000};

// A session with work all the time, and the part of the device that the arithmetic gives it.
struct Contender {
  DeclaredShare share;
  double expected = 0;
};

struct Act {
  std::string what;
  std::vector<Contender> contenders;
  std::vector<DeclaredShare> idle = {};  // sessions that are there and have no work
  // Whether the device idles on purpose, so that parts count of the time and not of its use.
  bool part_of_time = false;
};

struct Observed {
  double furthest_off = 0;  // points, over all sessions and windows
  double used = 0;          // part of the whole time that was charged to anyone
};

// Time that nobody was charged for although somebody had work is no fluid time (a host that
// stalls), so what was asked is the expected part of what the device gave out.
Observed Watch(const Ledger& ledger, const Act& act,
               const std::vector<std::unique_ptr<Worker>>& workers, nanoseconds from,
               nanoseconds to) {
  Observed observed{.used = static_cast<double>(ledger.Charged(from, to).count()) /
                            static_cast<double>((to - from).count())};
  ForEachWindow(ledger, from, to, kWindow, [&](nanoseconds begin, nanoseconds end) {
    const double length = static_cast<double>((end - begin).count());
    const double given = static_cast<double>(ledger.Charged(begin, end).count());
    for (std::size_t i = 0; i < workers.size(); ++i) {
      const double got = static_cast<double>(ledger.Charged(workers[i]->id(), begin, end).count());
      const double asked = act.contenders[i].expected * (act.part_of_time ? length : given);
      observed.furthest_off = std::max(observed.furthest_off, 100 * std::abs(got - asked) / length);
    }
  });
  return observed;
}

Result<Observed> Play(Stage& stage, const Act& act, seconds length) {
  std::vector<std::unique_ptr<Worker>> workers, idle;
  for (const DeclaredShare& share : act.idle) {
    Result<std::unique_ptr<Worker>> worker = stage.Open("idle", share);
    if (!worker.ok()) return worker.status();
    idle.push_back(*std::move(worker));
  }
  for (const Contender& contender : act.contenders) {
    Result<std::unique_ptr<Worker>> worker = stage.Open("contender", contender.share);
    if (!worker.ok()) return worker.status();
    workers.push_back(*std::move(worker));
  }
  Result<std::unique_ptr<LedgerRecorder>> recorder = LedgerRecorder::Start(stage.admin());
  if (!recorder.ok()) return recorder.status();
  for (const std::unique_ptr<Worker>& worker : workers) {
    if (Status status = worker->KeepBusy({.each = kLaunch}); !status.ok()) return status;
  }
  // The first second begins here: all of them have work now.
  const nanoseconds from = DaemonNow(), to = from + length;
  WaitUntil(to);
  const Result<Ledger> ledger = LedgerUpTo(**recorder, to);
  if (!ledger.ok()) return ledger.status();
  for (const std::unique_ptr<Worker>& worker : workers) {
    if (Status status = worker->status(); !status.ok()) return status;
  }
  return Watch(*ledger, act, workers, from, to);
}

std::vector<Act> Acts() {
  std::vector<Contender> many = {{.share = {.weight = 99}, .expected = 99.0 / 162}};
  many.insert(many.end(), 63, Contender{.share = {.weight = 1}, .expected = 1.0 / 162});
  return {
      {.what = "70/30",
       .contenders = {{.share = {.weight = 70}, .expected = 0.7},
                      {.share = {.weight = 30}, .expected = 0.3}}},
      {.what = "10/20/70",
       .contenders = {{.share = {.weight = 10}, .expected = 0.1},
                      {.share = {.weight = 20}, .expected = 0.2},
                      {.share = {.weight = 70}, .expected = 0.7}}},
      {.what = "99 beside 63 of 1", .contenders = many},
      // Weights alone would give it a tenth.
      {.what = "min 40 % kept",
       .contenders = {{.share = {.weight = 10, .min = 0.4}, .expected = 0.4},
                      {.share = {.weight = 90}, .expected = 0.6}}},
      // Weights alone would give it nine tenths.
      {.what = "max 30 % beside another",
       .contenders = {{.share = {.weight = 90, .max = 0.3}, .expected = 0.3},
                      {.share = {.weight = 10}, .expected = 0.7}}},
      {.what = "max 30 % alone",
       .contenders = {{.share = {.max = 0.3}, .expected = 0.3}},
       .part_of_time = true},
      {.what = "strict min 40 % stays free",
       .contenders = {{.share = {.weight = 70}, .expected = 0.6 * 0.7},
                      {.share = {.weight = 30}, .expected = 0.6 * 0.3}},
       .idle = {{.min = 0.4, .strict = true}},
       .part_of_time = true},
  };
}

// How much less of the device is used beside a session that keeps a min it has no work for.
Result<double> NotLent(Stage& stage, seconds length) {
  const Act alone{.what = "alone", .contenders = {{.share = {}, .expected = 1}}};
  const Act beside{.what = "beside an idle min",
                   .contenders = {{.share = {}, .expected = 1}},
                   .idle = {{.min = 0.4}}};
  const Result<Observed> reference = Play(stage, alone, length);
  if (!reference.ok()) return reference.status();
  const Result<Observed> lent = Play(stage, beside, length);
  if (!lent.ok()) return lent.status();
  return 100 * (reference->used - lent->used);
}

}  // namespace

Result<Measurement> MeasureShares(Length length) {
  const seconds each = length == Length::kFull ? seconds(20) : seconds(4);
  Result<std::unique_ptr<Stage>> stage = Stage::Raise({.flags = {"--policy=weighted_share"}});
  if (!stage.ok()) return stage.status();
  Measurement measurement;
  for (const Act& act : Acts()) {
    const Result<Observed> observed = Play(**stage, act, each);
    if (!observed.ok()) return observed.status();
    measurement.figures.push_back(
        AtMost(act.what + ": off, worst second", observed->furthest_off, "points", 1));
  }
  const Result<double> not_lent = NotLent(**stage, each);
  if (!not_lent.ok()) return not_lent.status();
  measurement.figures.push_back(AtMost("min 40 % without work: not lent", *not_lent, "points", 1));
  return measurement;
}

}  // namespace gpusched::bench
