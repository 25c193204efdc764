// A bidirectional echo on gRPC's completion queue, and its synchronous client.
#include "promises/bare_echo.h"

#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <thread>
#include <utility>

#include "gpusched/v1/session.grpc.pb.h"

namespace gpusched::bench {
namespace {

using v1::ClientFrame;
using v1::ServerFrame;
using Service = v1::Sessions::AsyncService;

// Numbers as wide as those of a session that has been at it for a while.
constexpr std::uint64_t kJob = 100'000;
constexpr std::int64_t kMicroseconds = 40'000;
constexpr std::int64_t kSinceBoot = 1'000'000'000'000;

ClientFrame SubmitFrame() {
  ClientFrame frame;
  v1::Submit* submit = frame.add_messages()->mutable_submit();
  submit->set_job(kJob);
  submit->set_template_id(1);
  submit->set_client_ns(kMicroseconds);
  return frame;
}

ServerFrame ReportFrame() {
  ServerFrame frame;
  v1::JobReport* report = frame.add_messages()->mutable_job();
  report->set_job(kJob);
  report->set_outcome(v1::JOB_OUTCOME_DONE);
  report->set_client_ns(kMicroseconds);
  report->set_queued_ns(kMicroseconds);
  report->set_generation(1);
  report->set_started_ns(kSinceBoot);
  report->set_ended_ns(kSinceBoot);
  return frame;
}

// One stream of the server: accept, then read and write in turn.
class Call {
 public:
  Call(Service& service, grpc::ServerCompletionQueue& queue)
      : service_(service), queue_(queue), stream_(&context_), answer_(ReportFrame()) {
    service_.RequestAttach(&context_, &stream_, &queue_, &queue_, this);
  }

  void Proceed(bool ok) {
    switch (step_) {
      case Step::kAccept:
        if (!ok) {  // the server shuts down
          delete this;
          return;
        }
        new Call(service_, queue_);
        Read();
        return;
      case Step::kRead:
        if (!ok) {
          step_ = Step::kFinish;
          stream_.Finish(grpc::Status::OK, this);
          return;
        }
        step_ = Step::kWrite;
        stream_.Write(answer_, this);
        return;
      case Step::kWrite: Read(); return;
      case Step::kFinish: delete this; return;
    }
  }

 private:
  enum class Step { kAccept, kRead, kWrite, kFinish };

  void Read() {
    step_ = Step::kRead;
    stream_.Read(&frame_, this);
  }

  Service& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<ServerFrame, ClientFrame> stream_;
  ClientFrame frame_;
  const ServerFrame answer_;
  Step step_ = Step::kAccept;
};

}  // namespace

int ServeBareEcho(const std::string& unix_endpoint) {
  Service service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(unix_endpoint, grpc::InsecureServerCredentials());
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  new Call(service, *queue);
  std::thread poller([&] {
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) static_cast<Call*>(tag)->Proceed(ok);
  });
  std::printf("%d\n", port);
  std::fflush(stdout);
  while (std::getchar() != EOF) {}
  server->Shutdown(std::chrono::system_clock::now());
  queue->Shutdown();
  poller.join();
  return 0;
}

class BareEcho::Stream {
 public:
  explicit Stream(const std::string& endpoint)
      : channel_(Channel(endpoint)),
        stub_(v1::Sessions::NewStub(channel_)),
        stream_(stub_->Attach(&context_)),
        request_(SubmitFrame()) {}
  ~Stream() {
    stream_->WritesDone();
    (void)stream_->Finish();
  }

  bool RoundTrip() { return stream_->Write(request_) && stream_->Read(&answer_); }

 private:
  static std::shared_ptr<grpc::Channel> Channel(const std::string& endpoint) {
    grpc::ChannelArguments arguments;
    // A connection of its own, as each client of the daemon has.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Sessions::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<ClientFrame, ServerFrame>> stream_;
  const ClientFrame request_;
  ServerFrame answer_;
};

Result<std::unique_ptr<BareEcho>> BareEcho::Connect(const std::string& endpoint) {
  std::unique_ptr<BareEcho> echo(new BareEcho(std::make_unique<Stream>(endpoint)));
  if (Status status = echo->RoundTrip(); !status.ok()) return status;
  return echo;
}

BareEcho::BareEcho(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
BareEcho::~BareEcho() = default;

Status BareEcho::RoundTrip() {
  if (stream_->RoundTrip()) return Status::Ok();
  return Status(StatusCode::kUnavailable, "ECHO_LOST", "the bare echo does not answer");
}

}  // namespace gpusched::bench
