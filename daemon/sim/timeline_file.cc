// The trace event format: complete events in microseconds.
#include "sim/timeline_file.h"

#include <cstdio>
#include <variant>

#include "gpusched/reasons.h"

namespace gpusched::sim {
namespace {

enum Lane : int { kSlices = 0, kCommands = 1, kJobs = 2 };
constexpr const char* kLaneNames[] = {"slices", "commands", "jobs"};

std::string Microseconds(Duration d) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(d.count() / 1'000),
                static_cast<long long>(d.count() % 1'000));
  return text;
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) escaped += c;
  }
  return escaped;
}

const char* EndOf(SliceEnd end) {
  switch (end) {
    case SliceEnd::kExpired: return "expired";
    case SliceEnd::kRanDry: return "ran dry";
    case SliceEnd::kPreempted: return "preempted";
    case SliceEnd::kWithdrawn: return "withdrawn";
  }
  return "";
}

}  // namespace

Status TimelineFile::Open(const std::string& path) {
  path_ = path;
  file_.open(path, std::ios::binary);
  if (!file_) {
    return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration,
                  path + ": cannot be written; check the folder and its permissions");
  }
  file_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  return Status::Ok();
}

Status TimelineFile::Close() {
  file_ << "\n]}\n";
  file_.close();
  if (file_) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration,
                path_ + ": could not be written to its end; is the disk full?");
}

// A process for each session, so that its lanes stay together.
void TimelineFile::Name(std::uint64_t session) {
  if (session >= named_.size()) named_.resize(session + 1);
  if (named_[session]) return;
  named_[session] = true;
  const std::string name =
      session <= names_.size() ? names_[session - 1] : "session " + std::to_string(session);
  const auto meta = [&](const char* what, int lane, const std::string& text) {
    file_ << (first_ ? "\n" : ",\n") << R"({"ph":"M","name":")" << what << R"(","pid":)" << session
          << R"(,"tid":)" << lane << R"(,"args":{"name":")" << Escaped(text) << R"("}})";
    first_ = false;
  };
  meta("process_name", 0, name);
  for (const int lane : {kSlices, kCommands, kJobs}) meta("thread_name", lane, kLaneNames[lane]);
}

void TimelineFile::Span(std::uint64_t session, int lane, const std::string& name, Time from,
                        Time to, const std::string& arguments) {
  Name(session);
  file_ << (first_ ? "\n" : ",\n") << R"({"ph":"X","name":")" << name << R"(","pid":)" << session
        << R"(,"tid":)" << lane << R"(,"ts":)" << Microseconds(from - Simulation::kStart)
        << R"(,"dur":)" << Microseconds(to - from) << R"(,"args":{)" << arguments << "}}";
  first_ = false;
}

void TimelineFile::OnEvent(Time, const core::Event& event) {
  const auto* finished = std::get_if<core::CommandFinished>(&event);
  if (finished == nullptr) return;
  const auto found = in_flight_.find(static_cast<std::uint64_t>(finished->ticket));
  if (found == in_flight_.end()) return;
  const Command& command = found->second;
  Span(command.session, kCommands, "job " + std::to_string(command.job), finished->started,
       finished->ended,
       "\"operation\":" + std::to_string(command.operation) + ",\"first\":" +
           std::to_string(command.first) + ",\"count\":" + std::to_string(command.count));
  in_flight_.erase(found);
}

void TimelineFile::OnAction(Time, const core::Action& action) {
  if (const auto* start = std::get_if<core::StartCommand>(&action)) {
    in_flight_[static_cast<std::uint64_t>(start->ticket)] = {
        start->session.serial, start->job->id, start->operation, start->first, start->count};
  } else if (const auto* record = std::get_if<core::RecordSlice>(&action)) {
    const SliceReport& slice = record->slice;
    if (slice.commands == 0) return;
    Span(slice.session.serial, kSlices, slice.rescue ? "rescue" : "slice", slice.started,
         slice.ended,
         "\"granted_us\":" + Microseconds(slice.granted) +
             ",\"charged_us\":" + Microseconds(slice.charged) +
             ",\"commands\":" + std::to_string(slice.commands) + ",\"end\":\"" + EndOf(slice.end) +
             "\",\"generation\":" + std::to_string(slice.generation));
  } else if (const auto* finish = std::get_if<core::FinishJob>(&action)) {
    const core::Job& job = *finish->job;
    if (job.first_start == Time{}) return;
    Span(job.session.serial, kJobs, "job " + std::to_string(job.id), job.first_start, job.last_end,
         "\"waited_us\":" + Microseconds(job.first_start - job.arrived) +
             ",\"late\":" + (job.last_end > job.deadline ? "true" : "false"));
  }
}

}  // namespace gpusched::sim
