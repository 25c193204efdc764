// Puts the parts together; the one path that a changed configuration takes.
#include <utility>  // Boost 1.74's asio forgets it under C++20.

#include "daemon.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "catalog.h"
#include "control/policy_control.h"
#include "control/session_directory.h"
#include "device/backends.h"
#include "executor/executor.h"
#include "file_watch.h"
#include "gpusched/reasons.h"
#include "gpusched/units.h"
#include "rpc/admin_server.h"
#include "rpc/session_server.h"
#include "telemetry/log.h"

namespace gpusched::daemon {
namespace {

// A configuration has a few kilobytes.
constexpr std::size_t kFileBytes = 1 << 20;

std::string AllOf(const std::vector<ConfigFault>& faults) {
  std::string text;
  for (const ConfigFault& fault : faults) text += (text.empty() ? "" : "; ") + Text(fault);
  return text;
}

Status FaultStatus(const std::string& path, const std::vector<ConfigFault>& faults) {
  return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration,
                (path.empty() ? "" : path + ": ") + AllOf(faults));
}

// A FIFO would be waited for, a folder reads as empty, a device never ends.
Result<std::string> ReadFile(const std::string& path) {
  const auto failed = [&path](const std::string& why) {
    return Status(StatusCode::kNotFound, reason::kBadConfiguration,
                  "cannot read the configuration file " + path + ": " + why);
  };
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return failed(std::strerror(errno));
  const std::unique_ptr<const int, void (*)(const int*)> closer(&fd,
                                                                [](const int* at) { close(*at); });
  struct stat info {};
  if (fstat(fd, &info) != 0) return failed(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return failed("it is no regular file");
  std::string text(kFileBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(std::strerror(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kFileBytes) return failed("it has more than " + FormatBytes(kFileBytes));
  text.resize(size);
  return text;
}

const Status& Stopping() {
  static const Status status(StatusCode::kUnavailable, reason::kDraining,
                             "the daemon is stopping; connect again when it is back");
  return status;
}

}  // namespace

class Daemon::Parts {
 public:
  explicit Parts(const Options& options) : options_(options) {}
  ~Parts();

  Status Start();
  std::string Describe() const;
  rpc::ReloadReport Reload(const std::string& who, bool only_if_changed);
  void Drain();
  void Close();
  bool idle() const;
  Duration drain_timeout() const {
    const std::lock_guard lock(mutex_);
    return config_.drain_timeout;
  }

 private:
  Status MakeExecutors();
  Status MakeServers();
  rpc::ReloadReport Apply(Config next, const std::string& who);
  std::string FileSource() const { return "file " + options_.config_path; }

  const Options options_;
  // Orders reloads; guards what they read and write.
  mutable std::mutex mutex_;
  Config config_;
  std::string applied_text_;
  std::optional<std::string> refused_text_;  // complained about already

  boost::asio::io_context events_{1};
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> working_;
  std::thread event_thread_;
  std::atomic<std::uint64_t> session_serials_{0};
  std::unique_ptr<control::PolicyControl> policy_;
  std::vector<std::unique_ptr<executor::Executor>> executors_;
  std::unique_ptr<control::SessionDirectory> directory_;
  std::unique_ptr<rpc::SessionServer> session_server_;
  std::unique_ptr<rpc::AdminServer> admin_server_;
  std::unique_ptr<FileWatch> watch_;
};

Status Daemon::Parts::Start() {
  std::optional<std::string> text;
  if (!options_.config_path.empty()) {
    Result<std::string> file = ReadFile(options_.config_path);
    if (!file.ok()) return file.status();
    text = *std::move(file);
  }
  ReadConfig read = Read(text, options_.overrides);
  if (!read.faults.empty()) return FaultStatus(options_.config_path, read.faults);
  config_ = std::move(read.config);
  applied_text_ = text.value_or("");
  if (Status opened = telemetry::OpenLog(config_.log.level, config_.log.file); !opened.ok()) {
    return opened;
  }
  if (Status made = MakeExecutors(); !made.ok()) return made;
  if (Status made = MakeServers(); !made.ok()) return made;
  if (options_.config_path.empty()) return Status::Ok();
  Result<std::unique_ptr<FileWatch>> watch =
      FileWatch::Start(options_.config_path, [this] { Reload(FileSource(), true); });
  if (!watch.ok()) return watch.status();
  watch_ = *std::move(watch);
  Reload(FileSource(), true);  // what changed since it was read was not watched yet
  return Status::Ok();
}

Status Daemon::Parts::MakeExecutors() {
  std::vector<std::unique_ptr<executor::Mailbox>> mailboxes;
  const device::DeviceOptions options{.kind = config_.device.kind,
                                      .count = config_.device.count,
                                      .cost_file = config_.device.costs,
                                      .memory_bytes = config_.device.memory,
                                      .cache_dir = config_.device.cache_dir,
                                      .spare_units = config_.device.spare_units,
                                      .priority_streams = config_.device.priority_streams,
                                      .select = config_.device.select};
  // Before any thread exists: gRPC and drivers want their environment set.
  rpc::SessionServer::PreparePolling();
  std::string passed_over;
  auto devices = device::OpenDevices(
      options,
      [&](std::size_t, const device::DeviceInfo&) {
        mailboxes.push_back(std::make_unique<executor::Mailbox>());
        return mailboxes.back().get();
      },
      &passed_over);
  if (!devices.ok()) return devices.status();
  if (!passed_over.empty()) telemetry::Info("devices passed over: " + passed_over);

  working_.emplace(events_.get_executor());
  event_thread_ = std::thread([this] { events_.run(); });
  control::PolicyRecord first =
      control::PolicyControl::Validate(config_.policy.kind, config_.policy.parameters).value;
  first.source = options_.config_path.empty() ? "start" : FileSource();
  const core::PolicySpec spec{first.kind, first.canonical, 1, first.source};
  policy_ = std::make_unique<control::PolicyControl>(std::move(first), events_);
  if (!options_.config_path.empty()) policy_->RememberFile(spec.kind, spec.parameters);
  core::Limits limits;
  limits.commands_in_flight = static_cast<std::uint32_t>(config_.device.in_flight);
  std::vector<executor::Executor*> all;
  for (std::size_t i = 0; i < devices->size(); ++i) {
    executor::Executor::Options made{.index = static_cast<std::uint32_t>(i),
                                     .limits = limits,
                                     .sessions = config_.sessions,
                                     .preemption_bound = config_.device.preemption_bound,
                                     .session_serials = &session_serials_,
                                     .on_ejected = {}};
    made.on_ejected = [this](std::uint32_t index, core::PolicyEjected ejected) {
      boost::asio::post(events_, [this, index, ejected = std::move(ejected)] {
        policy_->Ejected(index, ejected);
      });
    };
    executors_.push_back(std::make_unique<executor::Executor>(
        std::move(made), std::move(mailboxes[i]), std::move((*devices)[i]), spec,
        BuildPolicy(spec.kind, spec.parameters).policy, events_));
    all.push_back(executors_.back().get());
  }
  policy_->Govern(all);
  directory_ = std::make_unique<control::SessionDirectory>(std::move(all), config_.sessions);
  return Status::Ok();
}

Status Daemon::Parts::MakeServers() {
  auto admin = rpc::AdminServer::Start(
      {.endpoint = config_.admin.endpoint,
       .group = config_.admin.group,
       .reload = [this](const std::string& who) { return Reload(who, false); }},
      *policy_, *directory_);
  if (!admin.ok()) return admin.status();
  admin_server_ = *std::move(admin);
  auto sessions = rpc::SessionServer::Start(
      {.endpoints = config_.listen.endpoints, .insecure = config_.listen.insecure}, *directory_);
  if (!sessions.ok()) return sessions.status();
  session_server_ = *std::move(sessions);
  return Status::Ok();
}

rpc::ReloadReport Daemon::Parts::Reload(const std::string& who, bool only_if_changed) {
  const std::lock_guard lock(mutex_);
  rpc::ReloadReport report;
  if (options_.config_path.empty()) {
    report.status = Status(StatusCode::kFailedPrecondition, reason::kBadConfiguration,
                           "the daemon was started without --config; there is no file to read");
    return report;
  }
  Result<std::string> text = ReadFile(options_.config_path);
  if (!text.ok()) {
    report.status = text.status();
    // Between two renames there may be no file for a moment; the next event brings it.
    if (!only_if_changed) telemetry::Error("reload by " + who + ": " + report.status.ToString());
    return report;
  }
  if (only_if_changed && (*text == applied_text_ || *text == refused_text_)) return report;
  ReadConfig read = Read(*text, options_.overrides);
  if (!read.faults.empty()) {
    refused_text_ = *std::move(text);
    report.status = FaultStatus(options_.config_path, read.faults);
    for (const ConfigFault& fault : read.faults) {
      report.faults.push_back({fault.key, fault.message, fault.line, fault.column});
    }
    telemetry::Error("reload by " + who + " refused, what runs stays: " + report.status.message());
    return report;
  }
  applied_text_ = *std::move(text);
  refused_text_.reset();
  return Apply(std::move(read.config), who);
}

// Everything that can change live does; nothing here can fail any more.
rpc::ReloadReport Daemon::Parts::Apply(Config next, const std::string& who) {
  rpc::ReloadReport report;
  report.needs_restart = NeedsRestart(config_, next);
  const control::PolicyRecord current = policy_->current();
  policy_->RememberFile(next.policy.kind, next.policy.canonical);
  if (next.policy.kind != current.kind || next.policy.canonical != current.canonical) {
    report.changed = true;
    const auto applied = policy_->Apply({.kind = next.policy.kind,
                                         .parameters = next.policy.parameters,
                                         .etag = "",
                                         .lasts = Duration::zero(),
                                         .source = FileSource()});
    report.status = applied.fault.status;
  }
  if (!(next.sessions == config_.sessions)) {
    report.changed = true;
    directory_->SetLimits(next.sessions);
  }
  if (next.device.preemption_bound != config_.device.preemption_bound) {
    report.changed = true;
    for (const auto& executor : executors_) {
      executor->SetPreemptionBound(next.device.preemption_bound);
    }
  }
  if (next.log.level != config_.log.level) {
    report.changed = true;
    report.status = telemetry::SetLevel(next.log.level);
  }
  report.changed = report.changed || next.drain_timeout != config_.drain_timeout;
  config_.sessions = next.sessions;
  config_.device.preemption_bound = next.device.preemption_bound;
  config_.log.level = next.log.level;
  config_.drain_timeout = next.drain_timeout;
  config_.policy = next.policy;
  std::string restart;
  for (const std::string& key : report.needs_restart)
    restart += (restart.empty() ? "" : ", ") + key;
  telemetry::Info("configuration applied by " + who + (report.changed ? "" : ", nothing changed") +
                  (restart.empty() ? "" : "; only at the next start: " + restart));
  return report;
}

std::string Daemon::Parts::Describe() const {
  std::string text;
  for (const std::string& endpoint : session_server_->endpoints()) text += endpoint + ", ";
  text += "admin " + config_.admin.endpoint;
  for (const auto& executor : executors_) text += ", " + executor->device_info().uuid;
  const control::PolicyRecord policy = policy_->current();
  return text + ", policy " + policy.kind + "(" + policy.canonical + ")";
}

void Daemon::Parts::Drain() {
  session_server_->StopServing();
  for (const auto& executor : executors_) executor->Drain(Stopping());
}

void Daemon::Parts::Close() {
  for (const auto& executor : executors_) executor->CloseAll(Stopping());
}

bool Daemon::Parts::idle() const {
  for (const auto& executor : executors_) {
    if (executor->load().sessions.load() > 0) return false;
  }
  return true;
}

// Whoever brings goes first, then what is brought to.
Daemon::Parts::~Parts() {
  watch_.reset();
  admin_server_.reset();
  // A session is counted out before its stream is told: that must be under way, too.
  for (const auto& executor : executors_) executor->Settled();
  session_server_.reset();
  if (policy_ != nullptr) policy_->Stop();
  working_.reset();
  events_.stop();
  if (event_thread_.joinable()) event_thread_.join();
  executors_.clear();
}

Result<std::unique_ptr<Daemon>> Daemon::Start(const Options& options) {
  auto parts = std::make_unique<Parts>(options);
  if (Status started = parts->Start(); !started.ok()) return started;
  return std::unique_ptr<Daemon>(new Daemon(std::move(parts)));
}

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Daemon::~Daemon() = default;

std::string Daemon::Describe() const { return parts_->Describe(); }
Duration Daemon::drain_timeout() const { return parts_->drain_timeout(); }
void Daemon::Reload(const std::string& who) { parts_->Reload(who, false); }
void Daemon::Drain() { parts_->Drain(); }
void Daemon::Close() { parts_->Close(); }
bool Daemon::idle() const { return parts_->idle(); }

}  // namespace gpusched::daemon
