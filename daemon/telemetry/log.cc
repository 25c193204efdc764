// spdlog behind five functions, and a limit on what clients can make it say.
#include "telemetry/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>

#include "gpusched/reasons.h"

namespace gpusched::telemetry {
namespace {

std::optional<spdlog::level::level_enum> LevelOf(std::string_view name) {
  if (name == "debug") return spdlog::level::debug;
  if (name == "info") return spdlog::level::info;
  if (name == "warning") return spdlog::level::warn;
  if (name == "error") return spdlog::level::err;
  return std::nullopt;
}

Status UnknownLevel(std::string_view name) {
  return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration,
                "log.level '" + std::string(name) + "'; there are debug, info, warning, error");
}

// What clients send stands in many lines, and nobody reads so much of it.
constexpr std::size_t kLineBytes = 8 << 10;

// The line, or its beginning and how long it was.
std::string Bounded(std::string_view line) {
  if (line.size() <= kLineBytes) return std::string(line);
  return std::string(line.substr(0, kLineBytes)) + " ... (" + std::to_string(line.size()) +
         " bytes)";
}

// Guards every RateLimit: refusals are rare, and a line costs more than a lock.
std::mutex& LimitMutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

Status OpenLog(std::string_view level, const std::string& file) {
  const auto parsed = LevelOf(level);
  if (!parsed) return UnknownLevel(level);
  try {
    std::shared_ptr<spdlog::logger> logger;
    if (file.empty()) {
      logger = std::make_shared<spdlog::logger>("gpuschedd",
                                                std::make_shared<spdlog::sinks::stderr_sink_mt>());
    } else {
      logger = std::make_shared<spdlog::logger>(
          "gpuschedd", std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
    }
    logger->set_level(*parsed);
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    logger->flush_on(spdlog::level::debug);
    spdlog::set_default_logger(std::move(logger));
  } catch (const spdlog::spdlog_ex& failure) {
    return Status(StatusCode::kFailedPrecondition, reason::kBadConfiguration,
                  "log.file " + file + ": " + failure.what());
  }
  return Status::Ok();
}

Status SetLevel(std::string_view level) {
  const auto parsed = LevelOf(level);
  if (!parsed) return UnknownLevel(level);
  spdlog::set_level(*parsed);
  return Status::Ok();
}

void Debug(std::string_view line) { spdlog::debug("{}", Bounded(line)); }
void Info(std::string_view line) { spdlog::info("{}", Bounded(line)); }
void Warning(std::string_view line) { spdlog::warn("{}", Bounded(line)); }
void Error(std::string_view line) { spdlog::error("{}", Bounded(line)); }

void RateLimit::Warning(Time now, std::string_view line) {
  std::uint64_t left_out = 0;
  {
    const std::lock_guard lock(LimitMutex());
    const auto earned = (now - refilled_) * kPerSecond / std::chrono::seconds(1);
    if (earned > 0) {
      tokens_ = static_cast<int>(std::min<std::int64_t>(kBurst, tokens_ + earned));
      refilled_ = now;
    }
    if (tokens_ == 0) {
      ++left_out_;
      return;
    }
    --tokens_;
    left_out = std::exchange(left_out_, 0);
  }
  if (left_out > 0) {
    spdlog::warn("{} ({} more {} left out before)", Bounded(line), left_out, what_);
  } else {
    spdlog::warn("{}", Bounded(line));
  }
}

}  // namespace gpusched::telemetry
