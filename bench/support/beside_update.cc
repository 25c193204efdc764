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
  Module module;
  std::optional<Template> fixed;  // where every job is the same
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

Result<std::unique_ptr<BesideUpdate>> BesideUpdate::Start(const BesideUpdateOptions& options,
                                                          SteadyTime start) {
  std::unique_ptr<BesideUpdate> job(new BesideUpdate);
  job->options_ = options;
  if (!options.requests.empty()) {
    DeclaredShare share = options.request_share;
    share.latency_target = options.target;
    Result<std::unique_ptr<Service>> service = Open(options, "requests", share);
    if (!service.ok()) return service.status();
    job->request_service_ = *std::move(service);
  }
  if (options.update) {
    Result<std::unique_ptr<Service>> service = Open(options, "update", options.update_share);
    if (!service.ok()) return service.status();
    job->update_service_ = *std::move(service);
  }
  if (Status status = job->StartLoads(start); !status.ok()) return status;
  return job;
}

BesideUpdate::~BesideUpdate() = default;

Result<std::unique_ptr<BesideUpdate::Service>> BesideUpdate::Open(
    const BesideUpdateOptions& options, const std::string& name, DeclaredShare share) {
  Result<Client> client = Client::Connect({.endpoint = options.endpoint});
  if (!client.ok()) return client.status();
  Result<Session> session =
      client->OpenSession({.name = name, .device = options.device, .share = share});
  if (!session.ok()) return session.status();
  Result<Module> module = session->LoadModule({.virtual_text = kWorkModule});
  if (!module.ok()) return module.status();
  return std::unique_ptr<Service>(
      new Service{.session = *std::move(session), .module = *std::move(module), .fixed = {}});
}

Status BesideUpdate::StartLoads(SteadyTime start) {
  if (update_service_) {
    Service& service = *update_service_;
    Result<Template> fixed = service.session.RegisterTemplate(
        LaunchesOf(service.module.kernel(options_.update_cuttable ? "work" : "whole"),
                   options_.update_launch, options_.update_launch));
    if (!fixed.ok()) return fixed.status();
    service.fixed.emplace(*std::move(fixed));
    update_ = std::make_unique<Endless>(
        options_.update_outstanding, [&service] { return service.session.Submit(*service.fixed); });
  }
  if (!request_service_) return Status::Ok();

  Service& service = *request_service_;
  while (service.queues.size() < options_.request_queues) {
    const Result<std::uint32_t> queue = service.session.OpenQueue();
    if (!queue.ok()) return queue.status();
    service.queues.push_back(*queue);
  }
  const Duration first = options_.requests.front().work, longest = options_.request_launch;
  const Kernel kernel = service.module.kernel("work");
  const bool all_equal =
      std::all_of(options_.requests.begin(), options_.requests.end(),
                  [first](const Arrival& arrival) { return arrival.work == first; });
  OpenLoop::Submit submit;
  if (all_equal) {
    Result<Template> fixed = service.session.RegisterTemplate(LaunchesOf(kernel, first, longest));
    if (!fixed.ok()) return fixed.status();
    service.fixed.emplace(*std::move(fixed));
    submit = [&service](const Arrival&, const SubmitOptions& options) {
      return service.session.Submit(*service.fixed, service.InTurn(options));
    };
  } else {
    submit = [&service, kernel, longest](const Arrival& arrival, const SubmitOptions& options) {
      return service.session.Submit(LaunchesOf(kernel, arrival.work, longest),
                                    service.InTurn(options));
    };
  }
  requests_ = std::make_unique<OpenLoop>(options_.requests, start, std::move(submit));
  return Status::Ok();
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
    if (request.fate == Fate::kAnswered) efficiency.Add(request.work, request.report);
  }
  const Duration others = end.update.charged - begin_->update.charged;
  ServiceFigures figures = FromAccounts("requests", begin_->requests, end.requests, others,
                                        end.time - begin_->time, efficiency);
  const std::vector<Measured> latencies = Latencies(requests);
  figures.jobs = requests.size();
  figures.p50 = Percentile(latencies, 50);
  figures.p99 = Percentile(latencies, 99);
  figures.on_time = OnTime(requests, options_.target);
  return figures;
}

ServiceFigures BesideUpdate::UpdateFigures(const Accounts& end) const {
  Efficiency efficiency;
  std::vector<Duration> totals;
  for (const JobReport& report : update_->DoneBetween(begin_->time, end.time)) {
    efficiency.Add(options_.update_launch, report);
    totals.push_back(report.total);
  }
  const Duration others = end.requests.charged - begin_->requests.charged;
  ServiceFigures figures = FromAccounts("update", begin_->update, end.update, others,
                                        end.time - begin_->time, efficiency);
  figures.jobs = totals.size();
  figures.p50.value = Percentile(totals, 50);
  figures.p99.value = Percentile(totals, 99);
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
