// The checker's own book of sessions, queues and commands, kept from facts and orders alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/event.h"
#include "core/ticket.h"
#include "gpusched/policy/types.h"

namespace gpusched::sim {

struct BookedJob {
  struct Part {
    std::uint64_t extent = 0;
    bool cuttable = false;
  };
  std::uint64_t id = 0;
  std::vector<Part> parts;
  std::size_t part = 0;    // the first that is not wholly started
  std::uint64_t unit = 0;  // its first block or byte not started
  std::uint32_t in_flight = 0;
  bool may_be_skipped = false;
  bool begun = false, cancelled = false, failed = false;

  bool exhausted() const { return part == parts.size(); }
  void Exhaust() {
    part = parts.size();
    unit = 0;
  }
};

struct BookedQueue {
  std::deque<std::unique_ptr<BookedJob>> jobs;

  BookedJob* FirstToStart() const {
    for (const auto& job : jobs) {
      if (!job->exhausted()) return job.get();
    }
    return nullptr;
  }
  BookedJob* Find(std::uint64_t id) const {
    for (const auto& job : jobs) {
      if (job->id == id) return job.get();
    }
    return nullptr;
  }
};

// Time saved up under an upper limit, as far as it is certain from outside. The core takes a
// command's estimate when it starts, puts it right when it ends, and lets nothing be saved beyond
// the burst, or beyond what the session is owed, whenever it looks; but a group loses nothing while
// a command of somebody else executes. What it has saved lies between two levels: the high one is
// emptied while a command executes, the low one at its end, when some of what came in meanwhile is
// lost.
class CapWatch {
 public:
  // `least`: what surely can be saved. Nothing is when it begins.
  CapWatch(Duration burst, Duration least, Time begin)
      : burst_(static_cast<double>(burst.count())), least_(static_cast<double>(least.count())) {
    low_.filled = high_.filled = begin;
  }

  void SetRate(Time now, Rate rate) {
    Fill(low_, now, least_);
    rates_.push_back({now, static_cast<double>(rate) / static_cast<double>(kWholeDevice)});
    // What a command in flight took under the old rate may never be given back.
    low_.tokens = std::min(low_.tokens, least_) - in_flight_;
  }
  bool limited() const { return rates_.back().rate < 1; }
  void Start(Duration estimate) {
    in_flight_ += static_cast<double>(estimate.count());
    most_in_flight_ = std::max(most_in_flight_, in_flight_);
  }
  // `wait`: what may be saved beyond the burst. `counts`: it was charged to those who are limited.
  void End(Time now, Time submitted, Time ended, Duration estimate, Duration charged, Duration wait,
           bool counts = true) {
    const double burst = burst_ + static_cast<double>(wait.count());
    in_flight_ -= static_cast<double>(estimate.count());
    Fill(low_, now, least_);
    if (!counts) {
      // They had no chance to spend what came in while somebody else's command executed.
      Fill(high_, ended - charged, burst);
      Fill(high_, ended, burst + ComesIn(ended - charged, ended));
      Forget();
      return;
    }
    low_.tokens -= static_cast<double>(charged.count());
    Fill(high_, submitted, burst);
    lost_waiting_ = std::max(lost_waiting_, Fill(high_, ended - charged, burst));
    high_.tokens -= static_cast<double>(charged.count());
    Forget();
  }
  bool SurelyFree(Time now, Duration wanted = Duration(0)) const {
    Level low = low_;
    Fill(low, now, least_);
    return !limited() || low.tokens - in_flight_ > static_cast<double>(wanted.count()) + kRounding;
  }
  // How far it is surely beyond its limit; not above zero: it may be within.
  double SurelyBeyond(Time now, Duration wait) const {
    if (!limited()) return 0;
    Level high = high_;
    Fill(high, now, burst_ + static_cast<double>(wait.count()));
    return -high.tokens - most_in_flight_ - lost_waiting_ - kRounding;
  }

 private:
  struct Level {
    double tokens = 0;
    Time filled{};
  };
  static constexpr double kRounding = 10;  // ns

  struct Change {
    Time at;
    double rate;
  };

  double ComesIn(Time from, Time to) const {
    if (rates_.size() == 1) return rates_[0].rate * static_cast<double>((to - from).count());
    double in = 0;
    for (std::size_t i = 0; i < rates_.size(); ++i) {
      const Time begin = std::max(from, rates_[i].at);
      const Time end = i + 1 < rates_.size() ? std::min(to, rates_[i + 1].at) : to;
      if (end > begin) in += rates_[i].rate * static_cast<double>((end - begin).count());
    }
    return in;
  }
  // What did not fit into the burst.
  double Fill(Level& level, Time now, double burst) const {
    double lost = 0;
    if (now > level.filled) {
      const double in = ComesIn(level.filled, now);
      lost = std::max(0.0, in - std::max(0.0, burst - level.tokens));
      level.tokens += in - lost;
    }
    level.filled = std::max(level.filled, now);
    return lost;
  }
  // Rates of which nothing is left to come in.
  void Forget() {
    const Time filled = std::min(low_.filled, high_.filled);
    while (rates_.size() > 1 && rates_[1].at <= filled) rates_.erase(rates_.begin());
  }

  double burst_, least_, in_flight_ = 0, most_in_flight_ = 0, lost_waiting_ = 0;
  std::vector<Change> rates_{{Time{}, 1}};
  Level low_, high_;
};

struct BookedSession {
  BookedSession(const core::SessionOpened& fact, const core::Limits& limits, Time now)
      : id(fact.session),
        share(fact.share),
        cap(limits.cap_burst, limits.least_cap_burst / 2, now) {}

  SessionId id;
  Share share;
  CapWatch cap;
  std::deque<BookedQueue> queues;
  std::uint32_t jobs = 0;  // not ended
  std::uint32_t in_flight = 0;
  bool paused = false, closing = false;
  Duration charged{0};
  Time waits_since = kNever;     // with something to start; or since it started something last
  Time helpless_since = kNever;  // with work, all of it on the device: nothing it could be given
  Time wants_since = kNever;  // what the device owes it: since it came, or since its last command

  // Of commands that no recorded slice holds yet, in the order of their start. A slice begins with
  // one of them, so its budget is of one of their settings.
  struct Unrecorded {
    std::uint64_t generation = 0;  // in force
    bool inverted = false;         // a higher session could have run
    Duration bound_setting{0};     // the device's
  };
  std::deque<Unrecorded> unrecorded;
  // Of those, what has ended.
  std::uint32_t slice_commands = 0;
  Duration slice_charged{0};
  Time slice_started{}, slice_end{};

  Duration LargestSetting() const {
    Duration largest{0};
    for (const Unrecorded& command : unrecorded) largest = std::max(largest, command.bound_setting);
    return largest;
  }
  bool has_work() const { return jobs > 0 && !paused && !closing; }
  bool HasToStart() const {
    return std::any_of(queues.begin(), queues.end(),
                       [](const BookedQueue& queue) { return queue.FirstToStart() != nullptr; });
  }
};

struct BookedFlight {
  core::Ticket ticket{};
  BookedSession* session = nullptr;  // it stays as long as it has commands in flight
  BookedJob* job = nullptr;
  std::size_t part = 0;
  std::uint64_t first = 0, count = 0;
  Time submitted{};
  Duration estimate{0};
  Duration bound{0};          // in force for its session when it started
  Duration bound_setting{0};  // the device's, the largest since its slice may have begun
  std::int32_t priority = 0;
  std::int64_t line = 0;   // of the device's; a higher one goes first
  Duration owes{0};        // for what it had of the device so far
  bool one_piece = false;  // could not have been shorter
};

// A command that has been, for those who had to wait for it.
struct Executed {
  Time submitted{}, started{}, ended{};
  std::int32_t priority = 0;
  Duration bound{0}, bound_setting{0};
  Duration beyond{0};  // by how much it passed its estimate, or all of it if it could not be cut
};

}  // namespace gpusched::sim
