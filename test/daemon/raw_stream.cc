// The stream as gRPC sees it: byte buffers both ways.
#include "daemon/raw_stream.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/sync_stream.h>

#include <chrono>

namespace gpusched::test {

using Call = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

struct RawStream::Parts {
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
  std::unique_ptr<Call> call;
};

RawStream::RawStream(const std::string& endpoint) : parts_(std::make_unique<Parts>()) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  parts_->channel =
      grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
  parts_->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const grpc::internal::RpcMethod method(
      "/gpusched.v1.Sessions/Attach", grpc::internal::RpcMethod::BIDI_STREAMING, parts_->channel);
  parts_->call.reset(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
          parts_->channel.get(), method, &parts_->context));
}

RawStream::~RawStream() {
  parts_->context.TryCancel();
  grpc::ByteBuffer rest;
  while (parts_->call->Read(&rest)) {}
  (void)parts_->call->Finish();
}

void RawStream::Write(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  parts_->call->Write(grpc::ByteBuffer(&slice, 1));
}

void RawStream::HalfClose() { parts_->call->WritesDone(); }

std::optional<v1::ServerMessage> RawStream::Read() {
  while (read_.empty()) {
    grpc::ByteBuffer bytes;
    if (!parts_->call->Read(&bytes)) return std::nullopt;
    grpc::Slice slice;
    if (!bytes.DumpToSingleSlice(&slice).ok()) return std::nullopt;
    v1::ServerFrame frame;
    if (!frame.ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) return std::nullopt;
    for (v1::ServerMessage& message : *frame.mutable_messages())
      read_.push_back(std::move(message));
  }
  v1::ServerMessage message = std::move(read_.front());
  read_.pop_front();
  return message;
}

std::optional<v1::SessionEnded> RawStream::ReadEnded() {
  while (auto message = Read()) {
    if (message->has_ended()) return message->ended();
  }
  return std::nullopt;
}

std::optional<v1::JobReport> RawStream::ReadReport() {
  while (auto message = Read()) {
    if (message->has_job()) return message->job();
  }
  return std::nullopt;
}

v1::ClientFrame RawStream::Hello() {
  v1::ClientFrame frame;
  v1::Hello& hello = *frame.add_messages()->mutable_hello();
  hello.set_version(1);
  hello.set_name("raw");
  hello.set_device("auto");
  hello.set_client("test");
  return frame;
}

}  // namespace gpusched::test
