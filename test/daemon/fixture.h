// A daemon with virtual devices, a client and an operator, for stories about them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ctl/admin_client.h"
#include "gpusched/client.h"
#include "support/daemon_process.h"

namespace gpusched::test {

using namespace std::chrono_literals;

// Generous: a loaded machine under a sanitizer is slow, and nothing here is timed.
inline constexpr std::chrono::seconds kSoon{30};

// Short kernels, a long one, one that fails.
inline constexpr char kKernels[] =
    "kernel quick time_per_block=1us\n"
    "kernel long time_per_block=1ms\n"
    "kernel whole time_per_block=1ms cuttable=no\n"
    "kernel scaled time_per_block=1us parameters=buffer,u32,local scale=1\n"
    "kernel broken time_per_block=1us fail=yes\n";

// True as soon as `holds` is; false after kSoon. The condition is asked through sockets, which
// takes its own time.
inline bool Eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + kSoon;
  do {
    if (holds()) return true;
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

template <typename T>
T Take(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

inline std::unique_ptr<DaemonProcess> StartDaemon(DaemonOptions options = {}) {
  return Take(DaemonProcess::Start(std::move(options)));
}

// More bytes of results than sockets and windows hold, and nobody who asks for them.
inline void ReadMuchAndTakeNothing(Session& session, std::vector<char>& bytes,
                                   std::vector<Submission>& unread) {
  const Buffer buffer = Take(session.Allocate(bytes.size()));
  for (int i = 0; i < 20; ++i) {
    Result<Submission> job =
        session.Submit(Job().Read(buffer, bytes), {.when_full = WhenFull::kFail});
    if (!job.ok()) break;
    unread.push_back(*std::move(job));
  }
}

class WithDaemon : public testing::Test {
 protected:
  void Start(DaemonOptions options = {}) {
    daemon_ = StartDaemon(std::move(options));
    client_ = std::make_unique<Client>(Take(Client::Connect({.endpoint = daemon_->endpoint()})));
    admin_ = std::make_unique<admin::AdminClient>(
        Take(admin::AdminClient::Connect(daemon_->admin_endpoint())));
  }
  Session Open(SessionOptions options = {}) { return Take(client_->OpenSession(options)); }
  static Module Load(Session& session) {
    return Take(session.LoadModule({.virtual_text = kKernels}));
  }

  std::unique_ptr<DaemonProcess> daemon_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<admin::AdminClient> admin_;
};

// For EXPECT_THAT(status, Refused("REASON")).
MATCHER_P(Refused, reason, "is refused with " + std::string(reason)) {
  *result_listener << arg.ToString();
  return !arg.ok() && arg.reason() == reason;
}

}  // namespace gpusched::test
