// A template of one empty launch, submitted and waited for, beside a bare echo of the same frames.
//
// Rounds of both take turns in one run, so that both meet the same machine.
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "promises/bare_echo.h"
#include "promises/child.h"
#include "promises/stage.h"
#include "promises/table.h"
#include "support/percentile.h"

namespace gpusched::bench {
namespace {

constexpr const char* kEmptyModule = "kernel empty time_per_block=0\n";
constexpr int kRounds = 400;
constexpr int kTripsPerRound = 50;
constexpr int kSessions = 64;
constexpr int kCrowdRounds = 6;
constexpr int kCrowdTrips = 150;  // of each session in a round
constexpr milliseconds kEchoWithin{10'000};

using Trip = std::function<Status()>;
using Times = std::vector<nanoseconds>;

// A session with the template, ready to be submitted.
class EmptyJob {
 public:
  static Result<std::unique_ptr<EmptyJob>> Open(const std::string& endpoint) {
    const Result<Client> client = Client::Connect({.endpoint = endpoint});
    if (!client.ok()) return client.status();
    Result<Session> session = client->OpenSession({.name = "round trip"});
    if (!session.ok()) return session.status();
    const Result<Module> module = session->LoadModule({.virtual_text = kEmptyModule});
    if (!module.ok()) return module.status();
    Result<Template> job =
        session->RegisterTemplate(Job().Launch(module->kernel("empty"), Dim3{}, Dim3{}));
    if (!job.ok()) return job.status();
    std::unique_ptr<EmptyJob> opened(new EmptyJob(*std::move(session), *std::move(job)));
    if (Status status = opened->RoundTrip(); !status.ok()) return status;
    return opened;
  }

  Status RoundTrip() {
    Result<Submission> submission = session_.Submit(job_);
    if (!submission.ok()) return submission.status();
    return submission->Wait().status();
  }

 private:
  EmptyJob(Session session, Template job) : session_(std::move(session)), job_(std::move(job)) {}

  Session session_;
  Template job_;
};

Status Measure(const Trip& trip, int count, Times& times) {
  for (int i = 0; i < count; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (Status status = trip(); !status.ok()) return status;
    times.push_back(std::chrono::steady_clock::now() - begin);
  }
  return Status::Ok();
}

// All at once, each on a thread of its own.
Status MeasureCrowd(const std::vector<Trip>& trips, Times& times) {
  std::vector<Times> all(trips.size());
  std::vector<Status> statuses(trips.size());
  std::latch start(std::ssize(trips));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < trips.size(); ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      statuses[i] = Measure(trips[i], kCrowdTrips, all[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < trips.size(); ++i) {
    if (!statuses[i].ok()) return statuses[i];
    times.insert(times.end(), all[i].begin(), all[i].end());
  }
  return Status::Ok();
}

struct Pair {
  Times ours, bare;
};

struct Streams {
  std::vector<std::unique_ptr<EmptyJob>> ours;
  std::vector<std::unique_ptr<BareEcho>> bare;

  std::vector<Trip> OurTrips() const {
    std::vector<Trip> trips;
    for (const auto& job : ours) trips.push_back([&job = *job] { return job.RoundTrip(); });
    return trips;
  }
  std::vector<Trip> BareTrips() const {
    std::vector<Trip> trips;
    for (const auto& echo : bare) trips.push_back([&echo = *echo] { return echo.RoundTrip(); });
    return trips;
  }
};

Result<Streams> OpenStreams(const std::string& endpoint, const std::string& echo_endpoint) {
  Streams streams;
  for (int i = 0; i < kSessions; ++i) {
    Result<std::unique_ptr<EmptyJob>> job = EmptyJob::Open(endpoint);
    if (!job.ok()) return job.status();
    streams.ours.push_back(*std::move(job));
    Result<std::unique_ptr<BareEcho>> echo = BareEcho::Connect(echo_endpoint);
    if (!echo.ok()) return echo.status();
    streams.bare.push_back(*std::move(echo));
  }
  return streams;
}

double Ratio(const Pair& pair, double percent) {
  return Milliseconds(Percentile(pair.ours, percent)) /
         Milliseconds(Percentile(pair.bare, percent));
}

std::string Absolute(const std::string& transport, const Pair& pair) {
  const auto microseconds_of = [&](const Times& times, double percent) {
    return std::to_string(Percentile(times, percent) / microseconds(1));
  };
  return transport + ": p50 " + microseconds_of(pair.ours, 50) + " us, echo " +
         microseconds_of(pair.bare, 50) + " us; p99 " + microseconds_of(pair.ours, 99) +
         " us, echo " + microseconds_of(pair.bare, 99) + " us";
}

Status MeasureTransport(const std::string& name, const std::string& endpoint,
                        const std::string& echo_endpoint, int factor, Measurement& measurement) {
  const Result<Streams> streams = OpenStreams(endpoint, echo_endpoint);
  if (!streams.ok()) return streams.status();
  const std::vector<Trip> ours = streams->OurTrips(), bare = streams->BareTrips();
  Pair one, crowd;
  for (int round = 0; round < factor * kRounds; ++round) {
    if (Status status = Measure(ours[0], kTripsPerRound, one.ours); !status.ok()) return status;
    if (Status status = Measure(bare[0], kTripsPerRound, one.bare); !status.ok()) return status;
  }
  for (int round = 0; round < factor * kCrowdRounds; ++round) {
    if (Status status = MeasureCrowd(ours, crowd.ours); !status.ok()) return status;
    if (Status status = MeasureCrowd(bare, crowd.bare); !status.ok()) return status;
  }
  auto& figures = measurement.figures;
  figures.push_back(AtMost(name + ", p50", Ratio(one, 50), "x echo", 1.5));
  figures.push_back(AtMost(name + ", p99", Ratio(one, 99), "x echo", 2));
  figures.push_back(AtMost(name + ", 64 sessions, p50", Ratio(crowd, 50), "x echo", 1.4));
  measurement.remark += Absolute(name, one) + "\n" + Absolute(name + ", 64 sessions", crowd) + "\n";
  return Status::Ok();
}

}  // namespace

Result<Measurement> MeasureRoundTripGrpc(Length length) {
  Result<std::unique_ptr<Stage>> stage =
      Stage::Raise({.flags = {"--costs=" GPUSCHED_ZERO_COSTS}, .tcp = true});
  if (!stage.ok()) return stage.status();
  test::DaemonProcess& daemon = (*stage)->daemon();
  const std::string echo_socket = "unix:" + daemon.folder() + "/echo.sock";
  Result<std::unique_ptr<Child>> echo =
      Child::Start({ProgramPath("gpusched-bare-echo"), echo_socket});
  if (!echo.ok()) return echo.status();
  const Result<std::string> port = (*echo)->ReadLine(kEchoWithin);
  if (!port.ok()) return port.status();
  const std::string echo_tcp = "127.0.0.1:" + *port;
  const int factor = length == Length::kFull ? 5 : 1;
  Measurement measurement;
  if (Status status = MeasureTransport("unix", daemon.endpoint(), echo_socket, factor, measurement);
      !status.ok()) {
    return status;
  }
  if (Status status = MeasureTransport("TCP", daemon.tcp_endpoint(), echo_tcp, factor, measurement);
      !status.ok()) {
    return status;
  }
  return measurement;
}

}  // namespace gpusched::bench
