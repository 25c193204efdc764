// Opens two sessions, drives two loads, and turns reports and accounts into figures.
#include "support/beside_update.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "support/virtual_work.h"

namespace gpusched::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Ratio(Duration part, Duration whole) {
  return whole > Duration::zero()
             ? static_cast<double>(part.count()) / static_cast<double>(whole.count())
             : 0;
}

// What the sessions' launches asked for over what they were charged; empty of none.
struct Efficiency {
  Duration asked_for{0}, charged{0};
  void Add(Duration work, const JobReport& report) {
    asked_for += work;
    charged += report.charged;
  }
  std::optional<double> value() const {
    if (charged <= Duration::zero()) return std::nullopt;
    return Ratio(asked_for, charged);
  }
};

}  // namespace

struct BesideUpdate::Service {
  Session session;
  std::unique_ptr<Work> work = nullptr;
  std::vector<std::uint32_t> queues = {0};
  std::size_t submitted = 0;

  SubmitOptions InTurn(SubmitOptions submit_options) {
    submit_options.queue = queues[submitted++ % queues.size()];
    return submit_options;
  }
};

struct BesideUpdate::Accounts {
  SteadyTime time{};
  admin::Session requests, update;
};

Result<std::unique_ptr<BesideUpdate>> BesideUpdate::Open(const BesideUpdateOptions& options) {
  std::unique_ptr<BesideUpdate> job(new BesideUpdate);
  job->options_ = options;
  // The update first: an open session with a target would already shorten its chunks, and work that
  // finds its size is to do so unhindered.
  if (options.update) {
    Result<std::unique_ptr<Service>> service = OpenService(
        options, options.update_name, options.update_share,
        options.update_work ? options.update_work
                            : VirtualWork({.kernel = options.update_cuttable ? "work" : "whole",
                                           .longest = options.update_launch}));
    if (!service.ok()) return service.status();
    job->update_service_ = *std::move(service);
  }
  if (!options.requests.empty()) {
    DeclaredShare share = options.request_share;
    share.latency_target = options.target;
    Result<std::unique_ptr<Service>> service = OpenService(
        options, options.request_name, share,
        options.request_work ? options.request_work
                             : VirtualWork({.kernel = "work", .longest = options.request_launch}));
    if (!service.ok()) return service.status();
    job->request_service_ = *std::move(service);
    std::vector<std::uint32_t>& queues = job->request_service_->queues;
    while (queues.size() < options.request_queues) {
      const Result<std::uint32_t> queue = job->request_service_->session.OpenQueue();
      if (!queue.ok()) return queue.status();
      queues.push_back(*queue);
    }
  }
  return job;
}

Result<std::unique_ptr<BesideUpdate>> BesideUpdate::Start(const BesideUpdateOptions& options,
                                                          SteadyTime start) {
  Result<std::unique_ptr<BesideUpdate>> job = Open(options);
  if (!job.ok()) return job.status();
  if (Status status = (*job)->Begin(start); !status.ok()) return status;
  return job;
}

BesideUpdate::~BesideUpdate() = default;

Result<std::unique_ptr<BesideUpdate::Service>> BesideUpdate::OpenService(
    const BesideUpdateOptions& options, const std::string& name, DeclaredShare share,
    const MakeWork& make_work) {
  Result<Client> client = Client::Connect({.endpoint = options.endpoint});
  if (!client.ok()) return client.status();
  Result<Session> session =
      client->OpenSession({.name = name, .device = options.device, .share = share});
  if (!session.ok()) return session.status();
  std::unique_ptr<Service> service(new Service{.session = *std::move(session)});
  Result<std::unique_ptr<Work>> work = make_work(service->session);
  if (!work.ok()) return work.status();
  service->work = *std::move(work);
  return service;
}

Status BesideUpdate::Begin(SteadyTime start) {
  if (update_service_) {
    Service& service = *update_service_;
    update_ = std::make_unique<Endless>(
        options_.update_outstanding,
        [&service, launch = options_.update_launch] { return service.work->Submit(launch, {}); });
  }
  if (request_service_) {
    Service& service = *request_service_;
    requests_ = std::make_unique<OpenLoop>(
        options_.requests, start,
        [&service](const Arrival& arrival, const SubmitOptions& options) {
          return service.work->Submit(arrival.work, service.InTurn(options));
        },
        SubmitOptions{.skip_if_late = options_.skip_late_requests});
  }
  return Status::Ok();
}

Result<BesideUpdate::Results> BesideUpdate::Finish() {
  const Status update_status = update_ ? update_->status() : Status::Ok();
  requests_.reset();
  update_.reset();
  if (!update_status.ok()) return update_status;
  Results results;
  if (request_service_) {
    Result<Work::Checked> checked = request_service_->work->Check();
    if (!checked.ok()) return checked.status();
    results.requests = *std::move(checked);
  }
  if (update_service_) {
    Result<Work::Checked> checked = update_service_->work->Check();
    if (!checked.ok()) return checked.status();
    results.update = *std::move(checked);
  }
  return results;
}

Result<BesideUpdate::Accounts> BesideUpdate::Read(admin::AdminClient& admin) const {
  // A snapshot carries the time at which the accounts were read; a list of sessions does not.
  Result<std::unique_ptr<admin::Feed<admin::Snapshot>>> feed = admin.Watch(std::chrono::seconds(1));
  if (!feed.ok()) return feed.status();
  const Result<admin::Snapshot> snapshot = (*feed)->Next();
  (*feed)->Stop();
  if (!snapshot.ok()) return snapshot.status();
  Accounts accounts{.time = SteadyTime(snapshot->time), .requests = {}, .update = {}};
  for (const admin::Session& session : snapshot->sessions) {
    if (request_service_ && session.id == request_service_->session.id()) {
      accounts.requests = session;
    }
    if (update_service_ && session.id == update_service_->session.id()) accounts.update = session;
  }
  if ((request_service_ && accounts.requests.id == 0) ||
      (update_service_ && accounts.update.id == 0)) {
    return Status(StatusCode::kNotFound, reason::kUnknownSession,
                  "the daemon no longer lists a session of this run; its log says why");
  }
  return accounts;
}

Status BesideUpdate::BeginWindow(admin::AdminClient& admin) {
  Result<Accounts> accounts = Read(admin);
  if (!accounts.ok()) return accounts.status();
  begin_ = std::make_unique<Accounts>(*std::move(accounts));
  return Status::Ok();
}

Result<WindowFigures> BesideUpdate::EndWindow(admin::AdminClient& admin) {
  Result<Accounts> end = Read(admin);
  if (!end.ok()) return end.status();
  WindowFigures figures;
  if (requests_) {
    requests_->CancelBacklog();
    const std::vector<Request> requests = requests_->Between(begin_->time, end->time);
    figures.requests = RequestFigures(*end, requests);
    for (const Request& request : requests) {
      figures.behind_ms =
          std::max(figures.behind_ms, static_cast<double>(request.behind.count()) / 1e6);
    }
  }
  if (update_) {
    if (Status status = update_->status(); !status.ok()) return status;
    figures.update = UpdateFigures(*end);
  }
  return figures;
}

namespace {

// What the accounts say of a session between two readings.
ServiceFigures FromAccounts(const std::string& name, const admin::Session& begin,
                            const admin::Session& end, Duration others_charged, Duration window,
                            const Efficiency& efficiency) {
  ServiceFigures figures;
  figures.service = name;
  const Duration charged = end.charged - begin.charged;
  if (end.shares_promised) figures.asked = Ratio(end.asked - begin.asked, window);
  figures.got = Ratio(charged, window);
  figures.slices = end.slices - begin.slices;
  figures.preempted = end.preempted - begin.preempted;
  if (const std::optional<double> useful = efficiency.value()) {
    figures.rest_used = Ratio(charged, window - others_charged) * *useful;
  }
  return figures;
}

}  // namespace

ServiceFigures BesideUpdate::RequestFigures(const Accounts& end,
                                            const std::vector<Request>& requests) const {
  Efficiency efficiency;
  for (const Request& request : requests) {
    if (request.fate != Fate::kAnswered) continue;
    efficiency.Add(request_service_->work->KernelTime(request.work), request.report);
  }
  const Duration others = end.update.charged - begin_->update.charged;
  ServiceFigures figures = FromAccounts(options_.request_name, begin_->requests, end.requests,
                                        others, end.time - begin_->time, efficiency);
  figures.latencies = Latencies(requests);
  figures.jobs = requests.size();
  figures.p50 = Percentile(figures.latencies, 50);
  figures.p99 = Percentile(figures.latencies, 99);
  figures.on_time = OnTime(requests, options_.target);
  for (const Request& request : requests) {
    if (request.fate == Fate::kAnswered) {
      figures.longest = std::max(figures.longest, request.latency);
    }
  }
  return figures;
}

ServiceFigures BesideUpdate::UpdateFigures(const Accounts& end) const {
  Efficiency efficiency;
  std::vector<Duration> totals;
  for (const JobReport& report : update_->DoneBetween(begin_->time, end.time)) {
    efficiency.Add(update_service_->work->KernelTime(options_.update_launch), report);
    totals.push_back(report.total);
  }
  const Duration others = end.requests.charged - begin_->requests.charged;
  ServiceFigures figures = FromAccounts(options_.update_name, begin_->update, end.update, others,
                                        end.time - begin_->time, efficiency);
  figures.jobs = totals.size();
  figures.p50.value = Percentile(totals, 50);
  figures.p99.value = Percentile(totals, 99);
  if (!totals.empty()) figures.longest = *std::max_element(totals.begin(), totals.end());
  const Duration target = options_.update_share.latency_target;
  if (target > Duration::zero() && !totals.empty()) {
    const auto on_time = std::count_if(totals.begin(), totals.end(),
                                       [target](Duration total) { return total <= target; });
    figures.on_time = static_cast<double>(on_time) / static_cast<double>(totals.size());
  }
  return figures;
}

BesideUpdate::Progress BesideUpdate::progress() const {
  Progress progress;
  if (!begin_) return progress;
  const SteadyTime now = Clock::now();
  if (requests_) {
    for (const Request& request : requests_->Between(begin_->time, now)) {
      ++progress.due;
      if (request.fate == Fate::kAnswered && request.latency <= options_.target) {
        ++progress.on_time;
      }
    }
  }
  if (update_) progress.update_jobs = update_->DoneBetween(begin_->time, now).size();
  return progress;
}

std::vector<PolicyChoice> BuiltInPolicies() {
  return {{.label = "round_robin", .kind = "round_robin", .parameters = {}},
          {.label = "weighted_share", .kind = "weighted_share", .parameters = {}},
          {.label = "preemptive_priority", .kind = "preemptive_priority", .parameters = {}}};
}

Result<std::vector<std::vector<WindowFigures>>> UnderEachPolicy(
    admin::AdminClient& admin, const std::vector<BesideUpdate*>& jobs,
    const std::vector<PolicyChoice>& policies, const Timetable& timetable,
    const std::function<void(const PolicyChoice&, Duration into)>& tick) {
  std::vector<std::vector<WindowFigures>> all;
  SteadyTime turn = timetable.start;
  for (const PolicyChoice& policy : policies) {
    const Result<admin::Policy> set =
        admin.SetPolicy({.kind = policy.kind, .parameters = policy.parameters});
    if (!set.ok()) return set.status();
    std::this_thread::sleep_until(turn + timetable.dropped);
    for (BesideUpdate* job : jobs) {
      if (Status status = job->BeginWindow(admin); !status.ok()) return status;
    }
    const SteadyTime begin = turn + timetable.dropped, end = turn + timetable.each();
    for (SteadyTime next = begin; next < end;) {
      next = std::min(next + std::chrono::seconds(1), end);
      std::this_thread::sleep_until(next);
      if (tick) tick(policy, next - begin);
    }
    std::vector<WindowFigures> windows;
    for (BesideUpdate* job : jobs) {
      Result<WindowFigures> window = job->EndWindow(admin);
      if (!window.ok()) return window.status();
      windows.push_back(*std::move(window));
    }
    all.push_back(std::move(windows));
    turn = end;
  }
  return all;
}

}  // namespace gpusched::bench
