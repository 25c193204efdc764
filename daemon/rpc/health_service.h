// Says whether the daemon takes new sessions, in gRPC's standard words.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "gpusched/v1/health.grpc.pb.h"

namespace gpusched::rpc {

class HealthService final : public grpc::health::v1::Health::Service {
 public:
  // Knows one service by its full name, beside "" for the daemon.
  explicit HealthService(std::string name) : name_(std::move(name)) {}

  // Any thread. NOT_SERVING from now on; load balancers look elsewhere.
  void StopServing();
  // Watchers return soon.
  void Stop();

  grpc::Status Check(grpc::ServerContext*, const grpc::health::v1::HealthCheckRequest* request,
                     grpc::health::v1::HealthCheckResponse* response) override;
  grpc::Status Watch(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::ServerWriter<grpc::health::v1::HealthCheckResponse>* writer) override;

 private:
  // Each holds a thread.
  static constexpr int kWatchers = 64;

  bool Knows(const std::string& service) const { return service.empty() || service == name_; }

  const std::string name_;
  // Rarely taken: at the end of the daemon, and by watchers.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool serving_ = true, stopping_ = false;
  int watchers_ = 0;
};

}  // namespace gpusched::rpc
