// Stories of preemptive priority: deadlines, preemption, rescues; expected values by hand.
#include "preemptive_priority.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace gpusched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Time kStart{seconds(10)};
constexpr Duration kBound = milliseconds(1);

class PreemptivePriorityTest : public ::testing::Test {
 protected:
  SessionView& Open(std::int32_t priority, Duration target = Duration(0)) {
    const std::uint32_t slot = opened_++;
    SessionView& view = views_[slot];
    view.id = {slot, slot + 1u};
    view.share.priority = priority;
    view.share.latency_target = target;
    policy_->SessionAdded(view);
    return view;
  }
  // A job arrives now.
  void Arrives(SessionView& view, Duration work = milliseconds(2)) {
    view.waiting_since = now_;
    view.estimated_work = work;
    view.deadline =
        view.share.latency_target > Duration(0) ? now_ + view.share.latency_target : kNever;
    policy_->SessionRunnable(view);
  }
  Decision Ask(std::optional<CurrentSlice> current = std::nullopt) {
    DecisionContext context;
    context.now = now_;
    context.current = current;
    context.preemption_bound = kBound;
    context.longest_slice = seconds(1);
    return policy_->Decide(context);
  }
  // What was decided runs to the end of its budget, or until the policy wants to be asked again.
  SessionId Step() {
    const Decision decision = Ask();
    SessionView& view = views_[decision.session.slot];
    const Time started = now_;
    const Duration ran = std::min(decision.length, decision.ask_again - started);
    now_ += ran;
    view.account.last_served = started;
    view.waiting_since = now_;
    policy_->Charged(view, ran);
    policy_->SessionChanged(view);
    policy_->SliceEnded({.session = view.id,
                         .started = started,
                         .ended = now_,
                         .charged = ran,
                         .rescue = decision.rescue});
    rescued_ += decision.rescue ? ran : Duration(0);
    return view.id;
  }
  static CurrentSlice Running(const SessionView& view, Duration used = microseconds(500)) {
    return {.session = view.id, .granted = milliseconds(20), .used = used};
  }
  void Use(const PreemptivePriority::Settings& settings) {
    policy_ = std::make_unique<PreemptivePriority>(settings);
  }

  std::unique_ptr<PreemptivePriority> policy_ =
      std::make_unique<PreemptivePriority>(PreemptivePriority::Settings{});
  SessionView views_[16];
  std::uint32_t opened_ = 0;
  Time now_ = kStart;
  Duration rescued_{0};
};

TEST_F(PreemptivePriorityTest, TheHighestPriorityComesFirst) {
  SessionView &low = Open(0, milliseconds(5)), &high = Open(10);
  Arrives(low);
  Arrives(high);
  EXPECT_EQ(Ask().session, high.id);
}

TEST_F(PreemptivePriorityTest, WithinAPriorityTheEarliestDeadlineComesFirst) {
  SessionView &patient = Open(0, milliseconds(100)), &hasty = Open(0, milliseconds(20)),
              &without = Open(0);
  Arrives(without);
  Arrives(patient);
  Arrives(hasty);
  EXPECT_EQ(Ask().session, hasty.id);
  policy_->SessionIdle(hasty.id);
  EXPECT_EQ(Ask().session, patient.id);
  policy_->SessionIdle(patient.id);
  EXPECT_EQ(Ask().session, without.id);
}

TEST_F(PreemptivePriorityTest, AJobThatIsLateAnywayMakesNoOtherLate) {
  SessionView &late = Open(0, milliseconds(10)), &in_time = Open(0, milliseconds(50));
  Arrives(late, milliseconds(8));
  now_ += milliseconds(3);  // 7 ms are left for 8 ms of work
  Arrives(in_time);
  EXPECT_EQ(Ask().session, in_time.id);
  policy_->SessionIdle(in_time.id);
  EXPECT_EQ(Ask().session, late.id);
}

TEST_F(PreemptivePriorityTest, LateJobsOfEqualTargetsAreServedOldestFirst) {
  SessionView &older = Open(-1, milliseconds(50)), &newer = Open(-1, milliseconds(50));
  Arrives(newer);
  now_ -= milliseconds(20);
  Arrives(older);
  now_ += milliseconds(120);
  EXPECT_EQ(Ask().session, older.id);
}

TEST_F(PreemptivePriorityTest, OfLateJobsTheShortestTargetComesFirstAndNoTargetLast) {
  Use({.background_share = 0});
  SessionView &without = Open(1), &patient = Open(1, milliseconds(50)),
              &hasty = Open(1, milliseconds(10)), &low = Open(0, milliseconds(5));
  for (SessionView* view : {&without, &patient, &low}) Arrives(*view);
  now_ += milliseconds(1'900);
  Arrives(hasty);
  now_ += milliseconds(90);
  for (const SessionView* next : {&hasty, &patient, &without, &low}) {
    EXPECT_EQ(Ask().session, next->id);
    policy_->SessionIdle(next->id);
  }
}

TEST_F(PreemptivePriorityTest, AHigherPriorityPreemptsAtOnceALowerNever) {
  SessionView &low = Open(0, milliseconds(5)), &high = Open(1);
  Arrives(low);
  Arrives(high);
  const Decision preempting = Ask(Running(low));
  EXPECT_EQ(preempting.kind, Decision::Kind::kRun);
  EXPECT_EQ(preempting.session, high.id);
  EXPECT_EQ(Ask(Running(high)).kind, Decision::Kind::kKeep);
}

TEST_F(PreemptivePriorityTest, AnEarlierDeadlinePreemptsOnlyIfTheCurrentJobStillMeetsItsOwn) {
  SessionView &running = Open(0, milliseconds(40)), &hasty = Open(0, milliseconds(20));
  Arrives(running, milliseconds(30));
  Arrives(hasty, milliseconds(11));  // 30 + 11 ms do not fit into 40
  EXPECT_EQ(Ask(Running(running, Duration(0))).kind, Decision::Kind::kKeep);
  // With 2 ms of it started 28 + 11 do.
  EXPECT_EQ(Ask(Running(running, milliseconds(2))).session, hasty.id);
}

TEST_F(PreemptivePriorityTest, WhatTheCurrentSliceHasStartedIsNotCountedAsWorkLeft) {
  SessionView& running = Open(0, milliseconds(20));
  SessionView& other = Open(0, milliseconds(60));
  Arrives(running, milliseconds(15));
  Arrives(other);
  now_ += milliseconds(8);  // 12 ms are left; 15 would be too late, 15 - 8 is not
  EXPECT_EQ(Ask(Running(running, milliseconds(8))).kind, Decision::Kind::kKeep);
}

TEST_F(PreemptivePriorityTest, EqualSessionsWithoutTargetsTakeTurns) {
  SessionView &a = Open(0), &b = Open(0), &c = Open(0);
  for (SessionView* view : {&a, &b, &c}) Arrives(*view);
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(Step(), a.id);
    EXPECT_EQ(Step(), b.id);
    EXPECT_EQ(Step(), c.id);
  }
}

TEST_F(PreemptivePriorityTest, SlicesGrowWhileNothingElseIsChosen) {
  SessionView &a = Open(0), &high = Open(1);
  Arrives(a);
  std::vector<Duration> lengths;
  for (int i = 0; i < 8; ++i) {
    lengths.push_back(Ask().length);
    Step();
  }
  EXPECT_EQ(lengths.front(), milliseconds(1));
  EXPECT_EQ(lengths.back(), milliseconds(20));
  Arrives(high);
  EXPECT_EQ(Ask().length, milliseconds(1));
  Step();
  policy_->SessionIdle(high.id);
  EXPECT_EQ(Ask().length, milliseconds(1));
}

TEST_F(PreemptivePriorityTest, WhoeverWaitedTheStarvationBoundIsRescuedForOneBound) {
  SessionView &high = Open(10), &low = Open(0);
  Arrives(high);
  Arrives(low);
  const Decision before = Ask();
  EXPECT_EQ(before.session, high.id);
  EXPECT_EQ(before.ask_again, kStart + seconds(1));
  now_ += seconds(1);
  const Decision rescue = Ask(Running(high));
  EXPECT_EQ(rescue.session, low.id);
  EXPECT_TRUE(rescue.rescue);
  EXPECT_EQ(rescue.length, kBound);
}

TEST_F(PreemptivePriorityTest, ARescueIsNotPreempted) {
  SessionView &high = Open(10), &low = Open(0);
  Arrives(high);
  Arrives(low);
  now_ += seconds(1);
  CurrentSlice rescue = Running(low);
  rescue.rescue = true;
  EXPECT_EQ(Ask(rescue).kind, Decision::Kind::kKeep);
  low.waiting_since = now_;
  policy_->Charged(low, kBound);
  EXPECT_EQ(Ask().session, high.id);
}

TEST_F(PreemptivePriorityTest, ARescueThatFoundNoRoomIsNotPaidForByWhatWasInFlight) {
  SessionView &high = Open(10), &low = Open(0);
  Arrives(high);
  Arrives(low);
  low.account.last_served = now_;  // its latest slice, and of it a command is still in flight
  now_ += seconds(1);
  EXPECT_TRUE(Ask().rescue);
  policy_->Charged(low, milliseconds(50));  // that command took so much longer than expected
  policy_->SliceEnded({.session = low.id, .charged = milliseconds(51)});
  now_ += milliseconds(1);
  EXPECT_TRUE(Ask().rescue);
  EXPECT_EQ(Ask().session, low.id);
}

TEST_F(PreemptivePriorityTest, TheOldestIsRescuedFirstAndEachWithinTheDeclaredWait) {
  SessionView& high = Open(10);
  std::vector<SessionView*> lower;
  for (int i = 0; i < 8; ++i) lower.push_back(&Open(-i));
  Arrives(high);
  for (SessionView* view : lower) {
    now_ += milliseconds(1);
    Arrives(*view);
  }
  Duration longest{0};
  for (const Time end = now_ + seconds(20); now_ < end;) {
    const Decision decision = Ask();
    if (decision.session != high.id) {
      EXPECT_TRUE(decision.rescue);
      longest = std::max(longest, now_ - views_[decision.session.slot].waiting_since);
      for (const SessionView* other : lower) {
        EXPECT_LE(views_[decision.session.slot].waiting_since, other->waiting_since);
      }
    }
    Step();
  }
  EXPECT_GE(longest, seconds(1));
  EXPECT_LE(longest, policy_->LongestWait(high));
  EXPECT_LE(policy_->LongestWait(high), milliseconds(1'000 + 9 * 20 + 1));
}

TEST_F(PreemptivePriorityTest, RescuesTakeNoMoreThanTheBackgroundShareAndOneSlice) {
  Use({.starvation_bound = milliseconds(10), .background_share = kWholeDevice / 10});
  SessionView& high = Open(10);
  Arrives(high);
  for (int i = 0; i < 8; ++i) Arrives(Open(0));
  while (now_ < kStart + seconds(1)) Step();
  EXPECT_LE(rescued_, milliseconds(101));
  EXPECT_GE(rescued_, milliseconds(80));  // and they do use it
}

TEST_F(PreemptivePriorityTest, WithoutABackgroundShareThereAreNoRescuesAndNoPromise) {
  Use({.background_share = 0});
  SessionView &high = Open(10), &low = Open(0);
  Arrives(high);
  Arrives(low);
  now_ += seconds(100);
  EXPECT_EQ(Ask().session, high.id);
  EXPECT_EQ(Ask().ask_again, kNever);
  EXPECT_EQ(policy_->LongestWait(low), kForever);
}

TEST_F(PreemptivePriorityTest, AskingTwiceChangesNothing) {
  SessionView &high = Open(10), &low = Open(0), &lower = Open(-1);
  for (SessionView* view : {&high, &low, &lower}) Arrives(*view);
  for (int i = 0; i < 500; ++i) {
    const Decision once = Ask(), twice = Ask();
    EXPECT_EQ(once.session, twice.session);
    EXPECT_EQ(once.length, twice.length);
    EXPECT_EQ(once.rescue, twice.rescue);
    Step();
  }
}

TEST_F(PreemptivePriorityTest, AChangedPriorityCountsAtOnce) {
  SessionView &a = Open(0), &b = Open(0);
  Arrives(a);
  Arrives(b);
  b.share.priority = 5;
  policy_->SessionChanged(b);
  EXPECT_EQ(Ask(Running(a)).session, b.id);
}

}  // namespace
}  // namespace gpusched
