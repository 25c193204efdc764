// What clients can get wrong: a typed answer each, and the daemon goes on.
#include "daemon/raw_stream.h"
#include "fixture.h"

namespace gpusched::test {
namespace {

class BadInput : public WithDaemon {
 protected:
  // Whatever happened, others are served.
  void TearDown() override {
    if (daemon_ == nullptr) return;
    ASSERT_TRUE(daemon_->running());
    Session session = Open();
    const Module module = Load(session);
    Submission job = Take(session.Submit(Job().Launch(module.kernel("quick"), {1}, {1})));
    EXPECT_EQ(Take(job.Wait(kSoon)).outcome, Outcome::kDone);
  }

  std::string EndReason(RawStream& stream) {
    const auto ended = stream.ReadEnded();
    return ended ? ended->error().reason() : "(no SessionEnded)";
  }
};

TEST_F(BadInput, BytesThatAreNoFrameEndTheStream) {
  Start();
  RawStream before_hello(daemon_->endpoint());
  before_hello.Write("\xff\xff\xff no protobuf");
  EXPECT_EQ(EndReason(before_hello), "MALFORMED_FRAME");
  RawStream after_hello(daemon_->endpoint());
  after_hello.Write(RawStream::Hello());
  after_hello.Write("\xff\xff\xff no protobuf");
  EXPECT_EQ(EndReason(after_hello), "MALFORMED_FRAME");
}

TEST_F(BadInput, AMessageOfALaterVersionEndsTheStream) {
  Start();
  RawStream stream(daemon_->endpoint());
  v1::ClientFrame frame = RawStream::Hello();
  frame.add_messages();
  stream.Write(frame);
  EXPECT_EQ(EndReason(stream), "MALFORMED_FRAME");
}

TEST_F(BadInput, OversizedFramesAndPiecesEndTheStream) {
  Start();
  RawStream frame_stream(daemon_->endpoint());
  v1::ClientFrame frame = RawStream::Hello();
  for (int i = 0; i < 3; ++i)
    frame.add_messages()->mutable_data()->set_content(std::string(900'000, 'x'));
  frame_stream.Write(frame);
  EXPECT_EQ(EndReason(frame_stream), "FRAME_TOO_LARGE");
  RawStream piece_stream(daemon_->endpoint());
  v1::ClientFrame piece = RawStream::Hello();
  piece.add_messages()->mutable_data()->set_content(std::string(1'500'000, 'x'));
  piece_stream.Write(piece);
  EXPECT_EQ(EndReason(piece_stream), "FRAME_TOO_LARGE");
}

TEST_F(BadInput, HelloComesFirstAndOnce) {
  Start();
  RawStream without(daemon_->endpoint());
  v1::ClientFrame submit;
  submit.add_messages()->mutable_submit()->set_job(1);
  without.Write(submit);
  EXPECT_EQ(EndReason(without), "HELLO_EXPECTED");
  RawStream twice(daemon_->endpoint());
  v1::ClientFrame frame = RawStream::Hello();
  *frame.add_messages() = frame.messages(0);
  twice.Write(frame);
  EXPECT_EQ(EndReason(twice), "MALFORMED_FRAME");
}

TEST_F(BadInput, AnotherVersionIsRefusedByName) {
  Start();
  RawStream stream(daemon_->endpoint());
  v1::ClientFrame frame = RawStream::Hello();
  frame.mutable_messages(0)->mutable_hello()->set_version(9);
  stream.Write(frame);
  const auto ended = stream.ReadEnded();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->error().reason(), "VERSION_MISMATCH");
  EXPECT_THAT(ended->error().message(), testing::HasSubstr("9"));
}

TEST_F(BadInput, JobsThatNameNothingAreRefusedOneByOne) {
  Start();
  RawStream stream(daemon_->endpoint());
  v1::ClientFrame frame = RawStream::Hello();
  v1::Allocate& allocate = *frame.add_messages()->mutable_allocate();
  allocate.set_buffer(5);
  allocate.set_bytes(16);
  const auto submit = [&](std::uint64_t id) {
    v1::Submit& job = *frame.add_messages()->mutable_submit();
    job.set_job(id);
    return &job;
  };
  submit(1);
  submit(2)->set_template_id(77);
  submit(3)->add_operations()->mutable_launch()->set_module(4);
  v1::Launch& unknown =
      *frame.mutable_messages(4)->mutable_submit()->mutable_operations(0)->mutable_launch();
  unknown.mutable_grid()->set_x(1);
  unknown.mutable_grid()->set_y(1);
  unknown.mutable_grid()->set_z(1);
  v1::Fill& fill = *submit(4)->add_operations()->mutable_fill();
  fill.set_buffer(6);
  fill.set_bytes(1);
  v1::Submit& queue = *submit(5);
  queue.set_queue(9);
  v1::Fill& outside = *submit(6)->add_operations()->mutable_fill();
  outside.set_buffer(5);
  outside.set_offset(10);
  outside.set_bytes(UINT64_MAX - 3);
  v1::CopyIn& copy = *submit(7)->add_operations()->mutable_copy_in();
  copy.set_buffer(5);
  copy.set_bytes(16);
  copy.set_staging(3);
  submit(8)->add_operations();
  stream.Write(frame);
  const std::string expected[] = {"EMPTY_JOB",        "UNKNOWN_TEMPLATE", "UNKNOWN_MODULE",
                                  "UNKNOWN_BUFFER",   "UNKNOWN_QUEUE",    "OUT_OF_BOUNDS",
                                  "DATA_OUT_OF_ORDER"};
  for (std::uint64_t id = 1; id <= std::size(expected); ++id) {
    const auto report = stream.ReadReport();
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->job(), id);
    EXPECT_EQ(report->outcome(), v1::JOB_OUTCOME_REFUSED);
    EXPECT_EQ(report->error().reason(), expected[id - 1]) << report->error().message();
  }
  // An operation that is none is no job's fault but the protocol's.
  EXPECT_EQ(EndReason(stream), "MALFORMED_FRAME");
}

TEST_F(BadInput, ReusedIdsAreRefused) {
  Start();
  RawStream stream(daemon_->endpoint());
  v1::ClientFrame frame = RawStream::Hello();
  for (int i = 0; i < 2; ++i) {
    v1::Allocate& allocate = *frame.add_messages()->mutable_allocate();
    allocate.set_buffer(5);
    allocate.set_bytes(1 << 20);
  }
  for (int i = 0; i < 2; ++i) {
    v1::Submit& job = *frame.add_messages()->mutable_submit();
    job.set_job(8);
    v1::Fill& fill = *job.add_operations()->mutable_fill();
    fill.set_buffer(5);
    fill.set_bytes(1 << 20);
  }
  stream.Write(frame);
  bool buffer_refused = false, job_refused = false;
  for (int i = 0; i < 5; ++i) {
    const auto message = stream.Read();
    ASSERT_TRUE(message.has_value());
    if (message->answer().error().reason() == "ID_IN_USE") buffer_refused = true;
    if (message->job().error().reason() == "ID_IN_USE") job_refused = true;
  }
  EXPECT_TRUE(buffer_refused);
  EXPECT_TRUE(job_refused);
}

TEST_F(BadInput, DataOutOfOrderIsAnsweredAndItsJobRefused) {
  Start();
  RawStream stream(daemon_->endpoint());
  v1::ClientFrame frame = RawStream::Hello();
  v1::Allocate& allocate = *frame.add_messages()->mutable_allocate();
  allocate.set_buffer(1);
  allocate.set_bytes(8);
  for (const std::uint64_t offset : {0, 6}) {
    v1::Data& data = *frame.add_messages()->mutable_data();
    data.set_staging(4);
    data.set_offset(offset);
    data.set_content("abcd");
  }
  v1::Submit& job = *frame.add_messages()->mutable_submit();
  job.set_job(1);
  v1::CopyIn& copy = *job.add_operations()->mutable_copy_in();
  copy.set_buffer(1);
  copy.set_bytes(8);
  copy.set_staging(4);
  stream.Write(frame);
  const auto report = stream.ReadReport();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->error().reason(), "DATA_OUT_OF_ORDER");
}

TEST_F(BadInput, StagedBytesPastTheWindowAreRefused) {
  Start({.yaml = "version: 1\ndevice: {kind: virtual}\nsessions: {window_bytes: 1MiB}\n",
         .flags = {}});
  RawStream stream(daemon_->endpoint());
  stream.Write(RawStream::Hello());
  for (int i = 0; i < 2; ++i) {
    v1::ClientFrame frame;
    v1::Data& data = *frame.add_messages()->mutable_data();
    data.set_staging(1);
    data.set_offset(static_cast<std::uint64_t>(i) * 800'000);
    data.set_content(std::string(800'000, 'x'));
    stream.Write(frame);
  }
  while (const auto message = stream.Read()) {
    if (!message->has_answer()) continue;
    EXPECT_EQ(message->answer().error().reason(), "STAGING_EXCEEDED");
    return;
  }
  FAIL() << "no answer";
}

TEST_F(BadInput, AClientThatNeverReadsIsEndedAndOthersAreNot) {
  Start();
  RawStream stream(daemon_->endpoint());
  stream.Write(RawStream::Hello());
  v1::ClientFrame frame;
  for (std::uint64_t id = 1; id <= 5'000; ++id) frame.add_messages()->mutable_submit()->set_job(id);
  const std::string bytes = frame.SerializeAsString();
  // Each of these jobs is refused with a report that nobody reads.
  for (int i = 0; i < 20; ++i) stream.Write(bytes);
  EXPECT_TRUE(
      Eventually([&] { return daemon_->Log().find("CLIENT_TOO_SLOW") != std::string::npos; }));
  EXPECT_EQ(EndReason(stream), "CLIENT_TOO_SLOW");
}

struct LaunchCase {
  const char* kernel;
  Dim3 grid, block;
  std::vector<Argument> arguments;
  const char* reason;
};

TEST_F(BadInput, LaunchesAreCheckedAgainstTheKernel) {
  Start();
  Session session = Open();
  const Module module = Load(session);
  const Buffer buffer = Take(session.Allocate(64));
  const std::uint32_t good = 1;
  const LaunchCase cases[] = {
      {"quick", {0, 1, 1}, {1}, {}, "BAD_GRID"},
      {"quick", {0xffffffffu, 0xffffffffu, 0xffffffffu}, {1}, {}, "BAD_GRID"},
      {"quick", {0xffffffffu, 0x7fffffffu, 1}, {1024}, {}, "BAD_GRID"},
      {"quick", {1}, {0, 1, 1}, {}, "BAD_BLOCK"},
      {"quick", {1}, {4'096, 4'096, 1}, {}, "BAD_BLOCK"},
      {"quick", {1}, {1}, {good}, "ARGUMENT_COUNT"},
      {"scaled", {1}, {1}, {}, "ARGUMENT_COUNT"},
      {"scaled", {1}, {1}, {good, good, Local{4}}, "ARGUMENT_KIND"},
      {"scaled", {1}, {1}, {buffer, std::uint64_t{1}, Local{4}}, "ARGUMENT_SIZE"},
      {"scaled", {1}, {1}, {buffer.At(64), good, Local{4}}, "OUT_OF_BOUNDS"},
      {"scaled", {1}, {1}, {buffer, good, Local{1 << 30}}, "LOCAL_MEMORY"},
      {"scaled", {1}, {1}, {buffer, good, Local{0}}, "LOCAL_MEMORY"},
      {"nothing", {1}, {1}, {}, "UNKNOWN_KERNEL"},
  };
  for (const LaunchCase& bad : cases) {
    Job job;
    job.LaunchWith(module.kernel(bad.kernel), bad.grid, bad.block, bad.arguments);
    Result<Submission> submission = session.Submit(job);
    const Status status = submission.ok() ? submission->Wait(kSoon).status() : submission.status();
    EXPECT_THAT(status, Refused(bad.reason)) << bad.kernel;
  }
}

TEST_F(BadInput, SharesThatCannotBeAreRefusedWithEverythingThatIsWrong) {
  Start();
  const auto refusal = [&](DeclaredShare share) {
    return client_->OpenSession({.share = share}).status();
  };
  EXPECT_THAT(refusal({.min = 0.5, .max = 0.2}), Refused("BAD_SHARE"));
  EXPECT_THAT(refusal({.strict = true}), Refused("BAD_SHARE"));
  EXPECT_THAT(refusal({.weight = 20'000}), Refused("BAD_SHARE"));
  EXPECT_THAT(refusal({.priority = 200}), Refused("BAD_SHARE"));
  const Status both = refusal({.weight = -1, .min = 2});
  EXPECT_THAT(both.message(),
              testing::AllOf(testing::HasSubstr("weight"), testing::HasSubstr("min")));
  Session half = Open({.share = {.min = 0.6}});
  const Status sum = refusal({.min = 0.5});
  EXPECT_THAT(sum, Refused("MIN_OVERSUBSCRIBED"));
  EXPECT_THAT(sum.message(), testing::HasSubstr("1.1"));
  EXPECT_THAT(half.ChangeShare({.min = 0.9, .max = 0.1}), Refused("BAD_SHARE"));
  EXPECT_TRUE(half.ChangeShare({.min = 0.2}).ok());
  EXPECT_TRUE(client_->OpenSession({.share = {.min = 0.5}}).ok());
}

TEST_F(BadInput, ConfiguredCapsHold) {
  Start({.yaml =
             "version: 1\ndevice: {kind: virtual, memory: 1GiB}\n"
             "sessions: {max_priority: 5, max_share: 50%, max_memory: 256MiB, max_sessions: 2}\n",
         .flags = {}});
  EXPECT_THAT(client_->OpenSession({.share = {.priority = 6}}).status(),
              Refused("ABOVE_CONFIGURED_CAP"));
  EXPECT_THAT(client_->OpenSession({.share = {.min = 0.6}}).status(),
              Refused("ABOVE_CONFIGURED_CAP"));
  EXPECT_THAT(client_->OpenSession({.memory = 1_GiB}).status(), Refused("ABOVE_CONFIGURED_CAP"));
  Session first = Open();
  EXPECT_DOUBLE_EQ(first.share().max, 0.5);
  Session second = Open({.memory = 1_MiB});
  EXPECT_THAT(client_->OpenSession().status(), Refused("TOO_MANY"));
  EXPECT_THAT(second.Allocate(2_MiB).status(), Refused("QUOTA_EXCEEDED"));
  Take(second.Allocate(1_MiB));
  ASSERT_TRUE(second.Close().ok());
}

TEST_F(BadInput, UnknownDevicesAndBadModulesAreNamed) {
  Start({.flags = {"--device=virtual", "--devices=2"}});
  const Status device = client_->OpenSession({.device = "virtual-7"}).status();
  EXPECT_THAT(device, Refused("UNKNOWN_DEVICE"));
  EXPECT_THAT(device.message(), testing::HasSubstr("virtual-1"));
  Session session = Open({.device = "1"});
  EXPECT_EQ(session.device().uuid, "virtual-1");
  EXPECT_THAT(session.LoadModule({.virtual_text = "kernal x\n"}).status(), Refused("BAD_MODULE"));
  EXPECT_THAT(session.LoadModule({.ptx = "//"}).status(), Refused("NO_USABLE_IMAGE"));
  EXPECT_THAT(session.Allocate(0).status(), Refused("OUT_OF_BOUNDS"));
}

TEST_F(BadInput, ALongNameMakesNoLongLine) {
  Start();
  RawStream stream(daemon_->endpoint());
  v1::ClientFrame frame = RawStream::Hello();
  frame.mutable_messages(0)->mutable_hello()->set_name(std::string(1'000'000, 'n'));
  stream.Write(frame);
  EXPECT_EQ(stream.ReadEnded()->error().reason(), "MALFORMED_FRAME");
  ASSERT_TRUE(daemon_->WaitForLog("refused", kSoon));
  EXPECT_LT(daemon_->Log().size(), 4'000u);
}

}  // namespace
}  // namespace gpusched::test
