// The contract of device.h as tests; every backend's test includes this once and instantiates it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "conformance/device_harness.h"
#include "conformance/expect_refused.h"
#include "gpusched/reasons.h"

namespace gpusched::device {

// A backend under test.
struct Subject {
  std::string name;
  // Nothing where the machine has no such device.
  std::function<std::unique_ptr<Device>(CompletionSink&, std::uint64_t memory_bytes)> open;
  Image good;     // kernel 0 "plain": no parameters; kernel 1 "touch": a buffer and a 4-byte value
  Image broken;   // with an error in line 2
  Image foreign;  // of a kind the backend does not take
};

inline void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

class DeviceConformance : public ::testing::TestWithParam<Subject> {
 protected:
  static constexpr std::uint64_t kMemory = 64 << 20;
  static constexpr std::uint64_t kQuota = 16 << 20;
  static constexpr ModuleId kModule = 7;
  static constexpr BufferId kBuffer = 9;

  void SetUp() override {
    device_ = GetParam().open(sink_, kMemory);
    if (device_ == nullptr) GTEST_SKIP() << "no such device on this machine";
  }

  SessionId Open(std::uint64_t quota = kQuota) {
    const SessionId session{.slot = static_cast<std::uint32_t>(sessions_), .serial = ++sessions_};
    const Status status = device_->OpenSession(session, {.memory_bytes = quota});
    EXPECT_TRUE(status.ok()) << status.ToString();
    return session;
  }
  // A session with the good module and a buffer of `bytes`.
  SessionId OpenReady(std::uint64_t bytes = 4'096) {
    const SessionId session = Open();
    const Prepared loaded = orders().Load(session, kModule, GetParam().good);
    EXPECT_TRUE(loaded.status.ok()) << loaded.status.ToString();
    const Status allocated = orders().Allocate(session, kBuffer, bytes);
    EXPECT_TRUE(allocated.ok()) << allocated.ToString();
    return session;
  }
  LaunchCommand Touch(SessionId session, std::uint32_t value = 1) {
    return orders().Launch(session, kModule, 1, {.x = 8}, {.x = 4},
                           {BufferArgument{.buffer = kBuffer}, Value(value)});
  }
  Orders& orders() {
    if (!all_orders_) all_orders_ = std::make_unique<Orders>(*device_, sink_);
    return *all_orders_;
  }

  RecordingSink sink_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Orders> all_orders_;
  std::uint64_t sessions_ = 0;
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceConformance);

TEST_P(DeviceConformance, SaysWhatItIs) {
  const DeviceInfo& info = device_->info();
  EXPECT_FALSE(info.uuid.empty());
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.backend.empty());
  EXPECT_EQ(info.memory_bytes, kMemory);
  EXPECT_GE(info.compute_units, 1u);
  EXPECT_GE(info.offset_alignment, 1u);
  EXPECT_GT(info.shortest_useful_chunk, Duration::zero());
}

TEST_P(DeviceConformance, OpensAndClosesASession) {
  const SessionId session = Open();
  EXPECT_TRUE(orders().Close(session).ok());
}

TEST_P(DeviceConformance, RefusesToOpenASessionTwice) {
  const SessionId session = Open();
  ExpectRefused(device_->OpenSession(session, {}), StatusCode::kAlreadyExists, reason::kIdInUse,
                "already open");
}

TEST_P(DeviceConformance, QuotasNeverPassTheDeviceTogether) {
  const SessionId first = Open(kMemory - 1'024);
  ExpectRefused(device_->OpenSession({.slot = 1, .serial = 100}, {.memory_bytes = 2'048}),
                StatusCode::kResourceExhausted, reason::kDeviceMemory, "1KiB");
  EXPECT_TRUE(orders().Close(first).ok());
  EXPECT_TRUE(device_->OpenSession({.slot = 1, .serial = 101}, {.memory_bytes = kMemory}).ok());
}

TEST_P(DeviceConformance, AllocationsStayWithinTheQuotaAndTheRefusalSaysWhatIsLeft) {
  const SessionId session = Open(8'192);
  EXPECT_TRUE(orders().Allocate(session, 1, 5'120).ok());
  ExpectRefused(orders().Allocate(session, 2, 4'096), StatusCode::kResourceExhausted,
                reason::kQuotaExceeded, "3KiB");
  ExpectRefused(orders().Allocate(session, 2, UINT64_MAX), StatusCode::kResourceExhausted,
                reason::kQuotaExceeded, "3KiB");
  EXPECT_TRUE(orders().Free(session, 1).ok());
  EXPECT_TRUE(orders().Allocate(session, 2, 8'192).ok());
}

TEST_P(DeviceConformance, ABufferHasAtLeastOneByte) {
  ExpectRefused(orders().Allocate(Open(), 1, 0), StatusCode::kInvalidArgument,
                reason::kArgumentSize, "at least one byte");
}

TEST_P(DeviceConformance, RefusesAnIdInUse) {
  const SessionId session = OpenReady();
  ExpectRefused(orders().Allocate(session, kBuffer, 16), StatusCode::kAlreadyExists,
                reason::kIdInUse, "buffer 9");
  ExpectRefused(orders().Load(session, kModule, GetParam().good).status, StatusCode::kAlreadyExists,
                reason::kIdInUse, "module 7");
  // The refusals cost nothing: the whole quota but one buffer is left.
  EXPECT_TRUE(orders().Allocate(session, 10, kQuota - 4'096).ok());
}

TEST_P(DeviceConformance, AnsweredPreparationsNameWhatIsMissing) {
  const SessionId session = Open();
  const SessionId stranger{.slot = 50, .serial = 5'000};
  ExpectRefused(orders().Free(session, 3), StatusCode::kNotFound, reason::kUnknownBuffer, "3");
  ExpectRefused(orders().Carry(UnloadModule{.session = session, .module = 4}).status,
                StatusCode::kNotFound, reason::kUnknownModule, "4");
  ExpectRefused(orders().Allocate(stranger, 1, 16), StatusCode::kNotFound, reason::kUnknownSession,
                "5000");
  ExpectRefused(orders().Load(stranger, 1, GetParam().good).status, StatusCode::kNotFound,
                reason::kUnknownSession, "5000");
  ExpectRefused(orders().Close(stranger), StatusCode::kNotFound, reason::kUnknownSession, "5000");
}

TEST_P(DeviceConformance, PreparationsOfASessionCompleteInOrder) {
  const SessionId session = Open();
  std::vector<Ticket> asked;
  asked.push_back(orders().Prepare(
      LoadModule{.session = session, .module = kModule, .images = {GetParam().good}}));
  for (BufferId buffer = 1; buffer <= 20; ++buffer) {
    asked.push_back(orders().Prepare(Allocate{.session = session, .buffer = buffer, .bytes = 64}));
    asked.push_back(orders().Prepare(Free{.session = session, .buffer = buffer}));
  }
  sink_.Done(asked.back());
  std::vector<Ticket> answered;
  for (const Prepared& prepared : sink_.prepared()) {
    EXPECT_TRUE(prepared.status.ok()) << prepared.status.ToString();
    answered.push_back(prepared.ticket);
  }
  EXPECT_EQ(answered, asked);
}

TEST_P(DeviceConformance, AModuleListsItsKernelsInAFixedOrder) {
  const SessionId session = Open();
  const Prepared loaded = orders().Load(session, kModule, GetParam().good);
  ASSERT_TRUE(loaded.status.ok()) << loaded.status.ToString();
  ASSERT_EQ(loaded.module.kernels.size(), 2u);
  const KernelInfo& plain = loaded.module.kernels[0];
  const KernelInfo& touch = loaded.module.kernels[1];
  EXPECT_EQ(plain.name, "plain");
  EXPECT_TRUE(plain.parameters.empty());
  EXPECT_EQ(touch.name, "touch");
  ASSERT_EQ(touch.parameters.size(), 2u);
  EXPECT_EQ(touch.parameters[0].kind, Parameter::Kind::kBuffer);
  EXPECT_EQ(touch.parameters[1].kind, Parameter::Kind::kValue);
  EXPECT_EQ(touch.parameters[1].size, 4u);
  EXPECT_GE(touch.max_block_threads, 1u);
  EXPECT_NE(touch.cuttable, !touch.whole_reason.empty());
  EXPECT_TRUE(orders().Carry(UnloadModule{.session = session, .module = kModule}).status.ok());
  EXPECT_TRUE(orders().Load(session, kModule, GetParam().good).status.ok());
}

TEST_P(DeviceConformance, ABrokenModuleIsRefusedWithTheLine) {
  const SessionId session = Open();
  const Status status = orders().Load(session, kModule, GetParam().broken).status;
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.reason(), ::testing::AnyOf(reason::kBadModule, reason::kBuildFailed));
  EXPECT_THAT(status.message(), ::testing::ContainsRegex("line 2|:2:"));
  // The id is free, the session unharmed.
  EXPECT_TRUE(orders().Load(session, kModule, GetParam().good).status.ok());
}

TEST_P(DeviceConformance, TakesTheImageItKnowsAndRefusesAModuleWithoutOne) {
  const SessionId session = Open();
  const Image foreign = GetParam().foreign;
  ExpectRefused(orders().Load(session, 1, foreign).status, StatusCode::kInvalidArgument,
                reason::kNoUsableImage, device_->info().uuid);
  ExpectRefused(orders().Carry(LoadModule{.session = session, .module = 1, .images = {}}).status,
                StatusCode::kInvalidArgument, reason::kNoUsableImage, device_->info().uuid);
  const Prepared both = orders().Carry(
      LoadModule{.session = session, .module = 1, .images = {foreign, GetParam().good}});
  EXPECT_TRUE(both.status.ok()) << both.status.ToString();
}

TEST_P(DeviceConformance, EveryStartHasExactlyOneCompletion) {
  const SessionId session = OpenReady();
  std::set<Ticket> started;
  Ticket last{};
  for (int i = 0; i < 50; ++i) {
    last = orders().Start({Touch(session)});
    started.insert(last);
  }
  // A later command completes after them, so nothing can still be on its way.
  started.insert(
      orders().Start({FillCommand{.session = session, .buffer = kBuffer, .count = 1, .total = 1}}));
  sink_.Finished(*started.rbegin());
  sink_.Finished(last);
  std::multiset<Ticket> finished;
  for (const Completion& completion : sink_.completions()) {
    EXPECT_EQ(completion.outcome, Completion::Outcome::kDone) << completion.error.ToString();
    finished.insert(completion.ticket);
  }
  EXPECT_THAT(finished, ::testing::ElementsAreArray(started));
  EXPECT_EQ(sink_.losses(), 0);
}

TEST_P(DeviceConformance, EveryPartOfALaunchCompletesInItsPlace) {
  const SessionId session = OpenReady();
  if (!device_->info().can_cut) GTEST_SKIP() << "this device runs launches whole";
  std::vector<Ticket> started;
  for (const auto& [first, count] : {std::pair{0u, 1u}, {1u, 4u}, {5u, 3u}}) {
    LaunchCommand part = Touch(session);
    part.first = first;
    part.count = count;
    started.push_back(orders().Start({part}));
  }
  sink_.Finished(started.back());
  std::vector<Ticket> finished;
  for (const Completion& completion : sink_.completions()) {
    EXPECT_EQ(completion.outcome, Completion::Outcome::kDone) << completion.error.ToString();
    finished.push_back(completion.ticket);
  }
  EXPECT_EQ(finished, started);
}

TEST_P(DeviceConformance, CommandsExpectedToBeShortAreReportedOnceEachToo) {
  const SessionId session = OpenReady();
  std::vector<Ticket> started;
  for (int i = 0; i < 40; ++i) {
    Command command{Touch(session)};
    command.expected = Duration(i % 7 * 5'000);  // zero: nothing is known
    started.push_back(orders().Start(command));
  }
  sink_.Finished(started.back());
  std::vector<Ticket> finished;
  for (const Completion& completion : sink_.completions()) finished.push_back(completion.ticket);
  EXPECT_EQ(finished, started);
}

TEST_P(DeviceConformance, TimesAreOfTheExecutorsClockAndNeverGoBack) {
  const SessionId one = OpenReady();
  const SessionId two = OpenReady();
  const Time before = DeviceNow();
  Ticket last{};
  for (int i = 0; i < 40; ++i) last = orders().Start({Touch(i % 3 == 0 ? two : one)});
  sink_.Finished(last);
  const Time after = DeviceNow();
  Time ended = before, started = before;
  for (const Completion& completion : sink_.completions()) {
    EXPECT_LE(completion.started, completion.ended);
    EXPECT_GE(completion.ended, ended);
    if (device_->info().priority_classes == 1) {
      EXPECT_GE(completion.started, started);
    }
    ended = completion.ended;
    started = completion.started;
  }
  EXPECT_LE(ended, after);
  EXPECT_EQ(sink_.too_early(), 0);
}

TEST_P(DeviceConformance, AFreshBufferIsZero) {
  const SessionId session = OpenReady(64);
  EXPECT_EQ(orders().Read<std::uint8_t>(session, kBuffer, 64), std::vector<std::uint8_t>(64, 0));
  orders().Write(session, kBuffer, std::vector<std::uint8_t>(64, 0xAB));
  ASSERT_TRUE(orders().Free(session, kBuffer).ok());
  ASSERT_TRUE(orders().Allocate(session, kBuffer, 64).ok());
  EXPECT_EQ(orders().Read<std::uint8_t>(session, kBuffer, 64), std::vector<std::uint8_t>(64, 0));
}

TEST_P(DeviceConformance, CopiesMakeARoundTrip) {
  const SessionId session = OpenReady(1 << 20);
  std::vector<std::uint32_t> values(1 << 18);
  std::iota(values.begin(), values.end(), 12'345u);
  EXPECT_EQ(orders().Write(session, kBuffer, values).outcome, Completion::Outcome::kDone);
  EXPECT_EQ(orders().Read<std::uint32_t>(session, kBuffer, values.size()), values);
  EXPECT_EQ(orders().Read<std::uint32_t>(session, kBuffer, 2, 400),
            (std::vector{12'445u, 12'446u}));
}

TEST_P(DeviceConformance, ACutCopyMovesItsRangeOnly) {
  const SessionId session = OpenReady(16);
  std::vector<std::uint8_t> source(8), target(8, 0xEE);
  std::iota(source.begin(), source.end(), std::uint8_t{1});
  // Bytes 3 and 4 of an operation that begins at offset 5 of the buffer.
  orders().Run({CopyInCommand{.session = session,
                              .buffer = kBuffer,
                              .offset = 5,
                              .source = reinterpret_cast<const std::byte*>(source.data()),
                              .first = 3,
                              .count = 2,
                              .total = 8}});
  EXPECT_EQ(orders().Read<std::uint8_t>(session, kBuffer, 16),
            (std::vector<std::uint8_t>{0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 0, 0, 0, 0, 0, 0}));
  // And bytes 1 to 3 of one that begins at offset 7, back.
  orders().Run({CopyOutCommand{.session = session,
                               .buffer = kBuffer,
                               .offset = 7,
                               .target = reinterpret_cast<std::byte*>(target.data()),
                               .first = 1,
                               .count = 3,
                               .total = 8}});
  EXPECT_EQ(target, (std::vector<std::uint8_t>{0xEE, 4, 5, 0, 0xEE, 0xEE, 0xEE, 0xEE}));
}

TEST_P(DeviceConformance, AFillSetsItsRangeOnly) {
  const SessionId session = OpenReady(8);
  orders().Run({FillCommand{.session = session,
                            .buffer = kBuffer,
                            .offset = 1,
                            .value = 0x5A,
                            .first = 2,
                            .count = 3,
                            .total = 6}});
  EXPECT_EQ(orders().Read<std::uint8_t>(session, kBuffer, 8),
            (std::vector<std::uint8_t>{0, 0, 0, 0x5A, 0x5A, 0x5A, 0, 0}));
}

TEST_P(DeviceConformance, SessionsDoNotSeeEachOthersBuffers) {
  const SessionId one = OpenReady(4);
  const SessionId two = OpenReady(4);
  orders().Write(one, kBuffer, std::vector<std::uint32_t>{1});
  orders().Write(two, kBuffer, std::vector<std::uint32_t>{2});
  EXPECT_EQ(orders().Read<std::uint32_t>(one, kBuffer, 1), std::vector<std::uint32_t>{1});
  EXPECT_EQ(orders().Read<std::uint32_t>(two, kBuffer, 1), std::vector<std::uint32_t>{2});
}

TEST_P(DeviceConformance, NothingToDoIsDoneAtOnce) {
  const SessionId session = OpenReady(8);
  EXPECT_EQ(
      orders().Run({CopyInCommand{.session = session, .buffer = kBuffer, .offset = 8}}).outcome,
      Completion::Outcome::kDone);
  EXPECT_EQ(orders().Run({CopyOutCommand{.session = session, .buffer = kBuffer}}).outcome,
            Completion::Outcome::kDone);
  EXPECT_EQ(orders().Run({FillCommand{.session = session, .buffer = kBuffer, .value = 9}}).outcome,
            Completion::Outcome::kDone);
  EXPECT_EQ(orders().Read<std::uint8_t>(session, kBuffer, 8), std::vector<std::uint8_t>(8, 0));
}

TEST_P(DeviceConformance, ARangeOutsideTheBufferFailsAndTouchesNothing) {
  const SessionId session = OpenReady(8);
  const auto fill = [&](std::uint64_t offset, std::uint64_t first, std::uint64_t count,
                        std::uint64_t total) {
    const Completion failed = orders().Run({FillCommand{.session = session,
                                                        .buffer = kBuffer,
                                                        .offset = offset,
                                                        .value = 1,
                                                        .first = first,
                                                        .count = count,
                                                        .total = total}});
    EXPECT_EQ(failed.outcome, Completion::Outcome::kFailed);
    EXPECT_EQ(failed.error.reason(), reason::kOutOfBounds) << failed.error.ToString();
  };
  fill(0, 0, 9, 9);
  fill(8, 0, 1, 1);
  fill(UINT64_MAX, 0, 2, 2);
  fill(1, UINT64_MAX, 2, 4);
  fill(0, 2, 4, 5);
  EXPECT_EQ(orders().Read<std::uint8_t>(session, kBuffer, 8), std::vector<std::uint8_t>(8, 0));
}

TEST_P(DeviceConformance, ACommandThatNamesNothingFailsAndTheNextRuns) {
  const SessionId session = OpenReady();
  const auto fails = [&](Command command, std::string_view reason) {
    const Completion failed = orders().Run(std::move(command));
    EXPECT_EQ(failed.outcome, Completion::Outcome::kFailed);
    EXPECT_EQ(failed.error.reason(), reason) << failed.error.ToString();
  };
  fails({orders().Launch(session, 77, 0, {}, {})}, reason::kUnknownModule);
  fails({orders().Launch(session, kModule, 2, {}, {})}, reason::kUnknownKernel);
  fails({orders().Launch({.slot = 9, .serial = 999}, kModule, 0, {}, {})}, reason::kUnknownSession);
  fails({FillCommand{.session = session, .buffer = 1, .count = 1, .total = 1}},
        reason::kUnknownBuffer);
  EXPECT_EQ(orders().Run({Touch(session)}).outcome, Completion::Outcome::kDone);
  // Failures too are reported in the order of their starting.
  std::vector<Ticket> order;
  for (const Completion& completion : sink_.completions()) order.push_back(completion.ticket);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_P(DeviceConformance, CommandsTakeEffectInTheOrderOfTheirStarts) {
  const SessionId session = OpenReady(4);
  std::vector<std::vector<std::uint8_t>> seen(20, std::vector<std::uint8_t>(4));
  Ticket last{};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    orders().Start({FillCommand{.session = session,
                                .buffer = kBuffer,
                                .value = static_cast<std::uint8_t>(i),
                                .count = 4,
                                .total = 4}});
    last = orders().Start({CopyOutCommand{.session = session,
                                          .buffer = kBuffer,
                                          .target = reinterpret_cast<std::byte*>(seen[i].data()),
                                          .count = 4,
                                          .total = 4}});
  }
  sink_.Finished(last);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i], std::vector<std::uint8_t>(4, static_cast<std::uint8_t>(i)));
  }
}

TEST_P(DeviceConformance, AnInterruptStillMeansOneCompletion) {
  const SessionId session = OpenReady();
  const Ticket ticket = orders().Start({Touch(session)});
  device_->Interrupt(ticket);
  const Completion completion = sink_.Finished(ticket);
  EXPECT_THAT(completion.outcome,
              ::testing::AnyOf(Completion::Outcome::kDone, Completion::Outcome::kStopped));
}

TEST_P(DeviceConformance, ClosingASessionFreesEverythingItHeld) {
  for (int round = 0; round < 5; ++round) {
    const SessionId session = Open(kMemory);
    ASSERT_TRUE(orders().Load(session, kModule, GetParam().good).status.ok());
    ASSERT_TRUE(orders().Allocate(session, kBuffer, kMemory).ok());
    orders().Run({FillCommand{
        .session = session, .buffer = kBuffer, .value = 1, .count = 4'096, .total = 4'096}});
    ASSERT_TRUE(orders().Close(session).ok());
  }
}

TEST_P(DeviceConformance, IsDestroyedWithSessionsOpenAndNothingOutstanding) {
  const SessionId session = OpenReady();
  orders().Run({Touch(session)});
  device_.reset();
  EXPECT_EQ(sink_.losses(), 0);
}

}  // namespace gpusched::device
