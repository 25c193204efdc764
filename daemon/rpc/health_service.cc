// The two calls of the health protocol.
#include "rpc/health_service.h"

#include <chrono>

namespace gpusched::rpc {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

namespace {

// How long a watcher sleeps before it looks whether its client still is there.
constexpr std::chrono::milliseconds kLook(100);

}  // namespace

void HealthService::StopServing() {
  const std::lock_guard lock(mutex_);
  serving_ = false;
  changed_.notify_all();
}

void HealthService::Stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

grpc::Status HealthService::Check(grpc::ServerContext*, const HealthCheckRequest* request,
                                  HealthCheckResponse* response) {
  if (!Knows(request->service())) {
    return {grpc::StatusCode::NOT_FOUND,
            "no service '" + request->service() + "'; there is " + name_};
  }
  const std::lock_guard lock(mutex_);
  response->set_status(serving_ ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
  return grpc::Status::OK;
}

grpc::Status HealthService::Watch(grpc::ServerContext* context, const HealthCheckRequest* request,
                                  grpc::ServerWriter<HealthCheckResponse>* writer) {
  std::unique_lock lock(mutex_);
  if (watchers_ == kWatchers) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "there are too many watchers already"};
  }
  ++watchers_;
  HealthCheckResponse told;
  bool first = true, reading = true;
  while (reading && !stopping_ && !context->IsCancelled()) {
    const auto status = !Knows(request->service()) ? HealthCheckResponse::SERVICE_UNKNOWN
                        : serving_                 ? HealthCheckResponse::SERVING
                                                   : HealthCheckResponse::NOT_SERVING;
    if (first || status != told.status()) {
      first = false;
      told.set_status(status);
      lock.unlock();
      reading = writer->Write(told);
      lock.lock();
    } else {
      changed_.wait_for(lock, kLook);
    }
  }
  --watchers_;
  return grpc::Status::OK;
}

}  // namespace gpusched::rpc
