// Preparations: in order within a session, and nobody behind another session's compiler.
#include "device/preparation_line.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <vector>

namespace gpusched::device {
namespace {

constexpr SessionId kOne{.slot = 0, .serial = 1};
constexpr SessionId kTwo{.slot = 1, .serial = 2};
constexpr std::chrono::seconds kDeadline{60};

TEST(PreparationLine, ASessionsTasksKeepTheirOrderWhateverTheirPace) {
  std::mutex mutex;
  std::vector<int> done;
  {
    PreparationLine line(/*has_slow=*/true);
    for (int i = 0; i < 200; ++i) {
      line.Append(kOne, i % 3 == 0 ? Pace::kSlow : Pace::kQuick, [&, i] {
        std::lock_guard lock(mutex);
        done.push_back(i);
      });
    }
  }  // the line carries out everything before it closes
  ASSERT_EQ(done.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(done[i], i);
}

TEST(PreparationLine, QuickTasksOfOthersDoNotWaitForASlowOne) {
  PreparationLine line(/*has_slow=*/true);
  std::promise<void> compiled, allocated, own;
  auto gate = compiled.get_future().share();
  line.Append(kOne, Pace::kSlow, [gate] { gate.wait(); });
  line.Append(kOne, Pace::kQuick, [&] { own.set_value(); });
  line.Append(kTwo, Pace::kQuick, [&] { allocated.set_value(); });
  auto own_done = own.get_future();
  EXPECT_EQ(allocated.get_future().wait_for(kDeadline), std::future_status::ready);
  // The compiling session's own task keeps its place.
  EXPECT_EQ(own_done.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  compiled.set_value();
  EXPECT_EQ(own_done.wait_for(kDeadline), std::future_status::ready);
}

// Takes about a KiB of stack each time it calls itself.
int Recurse(int depth) {
  volatile char frame[1'024];
  frame[0] = static_cast<char>(depth);
  if (depth == 0) return 0;
  const int below = Recurse(depth - 1);
  return below + (frame[0] != 0 ? 1 : 0);
}

TEST(PreparationLine, ACompilerMayRecurseDeeply) {
  PreparationLine line(/*has_slow=*/true);
  std::promise<int> done;
  line.Append(kOne, Pace::kSlow, [&] { done.set_value(Recurse(64 * 1'024)); });
  EXPECT_GT(done.get_future().get(), 0);
}

TEST(PreparationLine, WithoutASlowThreadEverythingIsCarriedOutAllTheSame) {
  int done = 0;
  {
    PreparationLine line(/*has_slow=*/false);
    line.Append(kOne, Pace::kSlow, [&] { ++done; });
    line.Append(kTwo, Pace::kQuick, [&] { ++done; });
  }
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace gpusched::device
