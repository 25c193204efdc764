// A template of one empty launch, submitted and waited for, beside a bare echo of the same frames.
//
// Rounds of both take turns in one run, so that both meet the same machine. A round trip of two
// processes takes two and a half times as long on two processors as on one, where none has to be
// woken from its halt, and a kernel left alone keeps a pair of processes where it happens to be: so
// each is measured in both places, and the worse of the two ratios counts.
#include <sched.h>
#include <sys/types.h>

#include <algorithm>
#include <filesystem>
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
constexpr int kRounds = 200;  // in each place
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

// Where the programs run that answer, and the thread that asks.
class Places {
 public:
  explicit Places(std::vector<pid_t> servers) : servers_(std::move(servers)) {
    sched_getaffinity(0, sizeof all_, &all_);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &all_)) cpus_.push_back(cpu);
    }
  }
  ~Places() { Free(); }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  bool has_two() const { return cpus_.size() > 1; }
  void Together() const { Put(Only(cpus_.front()), Only(cpus_.front())); }
  void Apart() const { Put(Only(cpus_.front()), Only(cpus_.back())); }
  void Free() const { Put(all_, all_); }

 private:
  static cpu_set_t Only(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return set;
  }

  // A thread that has gone meanwhile needs no place.
  void Put(const cpu_set_t& asking, const cpu_set_t& answering) const {
    sched_setaffinity(0, sizeof asking, &asking);
    for (const pid_t server : servers_) {
      std::error_code gone;
      const std::string tasks = "/proc/" + std::to_string(server) + "/task";
      for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
        sched_setaffinity(std::stoi(task.path().filename()), sizeof answering, &answering);
      }
    }
  }

  const std::vector<pid_t> servers_;
  cpu_set_t all_;
  std::vector<int> cpus_;
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

Status MeasureOne(const Streams& streams, int rounds, Pair& one) {
  const Trip ours = streams.OurTrips()[0], bare = streams.BareTrips()[0];
  for (int round = 0; round < rounds; ++round) {
    if (Status status = Measure(ours, kTripsPerRound, one.ours); !status.ok()) return status;
    if (Status status = Measure(bare, kTripsPerRound, one.bare); !status.ok()) return status;
  }
  return Status::Ok();
}

Status MeasureTransport(const std::string& name, const std::string& endpoint,
                        const std::string& echo_endpoint, int factor, const Places& places,
                        Measurement& measurement) {
  const Result<Streams> streams = OpenStreams(endpoint, echo_endpoint);
  if (!streams.ok()) return streams.status();
  Pair together, apart, crowd;
  places.Together();
  if (Status status = MeasureOne(*streams, factor * kRounds, together); !status.ok()) return status;
  if (places.has_two()) {
    places.Apart();
    if (Status status = MeasureOne(*streams, factor * kRounds, apart); !status.ok()) return status;
  } else {
    apart = together;
  }
  places.Free();
  const std::vector<Trip> ours = streams->OurTrips(), bare = streams->BareTrips();
  for (int round = 0; round < factor * kCrowdRounds; ++round) {
    if (Status status = MeasureCrowd(ours, crowd.ours); !status.ok()) return status;
    if (Status status = MeasureCrowd(bare, crowd.bare); !status.ok()) return status;
  }
  const auto worse = [&](double percent) {
    return std::max(Ratio(together, percent), Ratio(apart, percent));
  };
  auto& figures = measurement.figures;
  figures.push_back(AtMost(name + ", p50", worse(50), "x echo", 1.5));
  figures.push_back(AtMost(name + ", p99", worse(99), "x echo", 2));
  figures.push_back(AtMost(name + ", 64 sessions, p50", Ratio(crowd, 50), "x echo", 1.4));
  measurement.remark += Absolute(name + ", one processor", together) + "\n" +
                        Absolute(name + ", two processors", apart) + "\n" +
                        Absolute(name + ", 64 sessions, anywhere", crowd) + "\n";
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
  const Places places({daemon.pid(), (*echo)->pid()});
  const int factor = length == Length::kFull ? 5 : 1;
  Measurement measurement;
  if (Status status =
          MeasureTransport("unix", daemon.endpoint(), echo_socket, factor, places, measurement);
      !status.ok()) {
    return status;
  }
  if (Status status =
          MeasureTransport("TCP", daemon.tcp_endpoint(), echo_tcp, factor, places, measurement);
      !status.ok()) {
    return status;
  }
  return measurement;
}

}  // namespace gpusched::bench
