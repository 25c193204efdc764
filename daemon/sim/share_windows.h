// How far what each session got is from what it asked, over all windows between ends of slices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <variant>
#include <vector>

#include "core/action.h"
#include "core/event.h"
#include "core/limits.h"
#include "sim/checker.h"
#include "sim/share_mixes.h"

namespace gpusched::sim {

// Reads the lag of everybody at the end of every slice.
class ShareWindows final : public Observer {
 public:
  explicit ShareWindows(const Checker& checker) : checker_(checker) {}

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

}  // namespace gpusched::sim
