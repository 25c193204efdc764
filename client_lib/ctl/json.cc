// What the operator's calls answer, as JSON.
#include "ctl/json.h"

#include <cstdint>
#include <cstdio>
#include <string_view>
#include <type_traits>

#include "ctl/words.h"

namespace gpusched::ctl {
namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      quoted += escaped;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// One object, member by member.
class Object {
 public:
  Object& Add(const char* name, std::string_view value) { return Raw(name, Quoted(value)); }
  Object& Add(const char* name, const char* value) { return Raw(name, Quoted(value)); }
  Object& Add(const char* name, admin::Duration value) {
    return Raw(name, std::to_string(value.count()));
  }
  template <typename T>
  requires std::is_arithmetic_v<T> Object& Add(const char* name, T value) {
    if constexpr (std::is_same_v<T, bool>) {
      return Raw(name, value ? "true" : "false");
    } else if constexpr (std::is_floating_point_v<T>) {
      char text[32];
      std::snprintf(text, sizeof text, "%.9g", value);
      return Raw(name, text);
    } else {
      return Raw(name, std::to_string(value));
    }
  }
  Object& Add(const char* name, const std::vector<std::string>& values) {
    std::string text = "[";
    for (const std::string& value : values) text += (text.size() > 1 ? ", " : "") + Quoted(value);
    return Raw(name, text + "]");
  }
  Object& Add(const char* name, const admin::Parameters& values) {
    Object object;
    for (const auto& [key, value] : values) object.Add(key.c_str(), value);
    return Raw(name, object.Text());
  }
  Object& Raw(const char* name, const std::string& value) {
    text_ += (text_.empty() ? "" : ", ") + Quoted(name) + ": " + value;
    return *this;
  }
  std::string Text() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string Json(const admin::Share& share) {
  return Object()
      .Add("weight", share.weight)
      .Add("min", share.min)
      .Add("max", share.max)
      .Add("strict", share.strict)
      .Add("priority", share.priority)
      .Add("latency_target_ns", share.latency_target)
      .Text();
}

std::string Json(const admin::Module::Kernel& kernel) {
  return Object()
      .Add("name", kernel.name)
      .Add("parameters", kernel.parameters)
      .Add("cuttable", kernel.cuttable)
      .Add("whole_reason", kernel.whole_reason)
      .Text();
}

std::string Json(const admin::PolicyKind::Parameter& parameter) {
  return Object()
      .Add("name", parameter.name)
      .Add("range", parameter.range)
      .Add("default_value", parameter.default_value)
      .Add("meaning", parameter.meaning)
      .Text();
}

std::string Json(const admin::FieldError& error) {
  return Object()
      .Add("field", error.field)
      .Add("message", error.message)
      .Add("line", error.line)
      .Add("column", error.column)
      .Text();
}

template <typename T>
std::string List(const std::vector<T>& items) {
  std::string text = "[";
  for (const T& item : items) text += (text.size() > 1 ? ", " : "") + Json(item);
  return text + "]";
}

}  // namespace

std::string Json(const admin::Device& device) {
  return Object()
      .Add("index", device.index)
      .Add("uuid", device.uuid)
      .Add("name", device.name)
      .Add("backend", device.backend)
      .Add("memory_bytes", device.memory_bytes)
      .Add("memory_used_bytes", device.memory_used_bytes)
      .Add("compute_units", device.compute_units)
      .Add("order_kept", device.order_kept)
      .Add("can_cut", device.can_cut)
      .Add("lost", device.lost)
      .Add("preemption_bound_ns", device.preemption_bound)
      .Add("shortest_useful_chunk_ns", device.shortest_useful_chunk)
      .Add("charged_ns", device.charged)
      .Add("busy_ns", device.busy)
      .Add("commands", device.commands)
      .Add("slices", device.slices)
      .Add("preemptions", device.preemptions)
      .Add("rescues", device.rescues)
      .Add("ejections", device.ejections)
      .Add("sessions", device.sessions)
      .Text();
}

std::string Json(const admin::Session& session) {
  Object object;
  object.Add("id", session.id)
      .Add("name", session.name)
      .Add("device", session.device)
      .Add("peer", session.peer)
      .Raw("share", Json(session.share))
      .Add("charged_ns", session.charged);
  if (session.shares_promised) {
    object.Add("asked_ns", session.asked);
  } else {
    object.Raw("asked_ns", "null");
  }
  return object.Add("lag_ns", session.lag)
      .Add("rate", session.rate)
      .Add("busy_ns", session.busy)
      .Add("longest_wait_ns", session.longest_wait)
      .Add("longest_uncuttable_ns", session.longest_uncuttable)
      .Add("bound_in_force_ns", session.bound_in_force)
      .Add("paused", session.paused)
      .Add("at_cap", session.at_cap)
      .Add("runnable", session.runnable)
      .Add("jobs_waiting", session.jobs_waiting)
      .Add("jobs_running", session.jobs_running)
      .Add("jobs_done", session.jobs_done)
      .Add("jobs_failed", session.jobs_failed)
      .Add("jobs_cancelled", session.jobs_cancelled)
      .Add("jobs_skipped", session.jobs_skipped)
      .Add("jobs_late", session.jobs_late)
      .Add("slices", session.slices)
      .Add("preempted", session.preempted)
      .Add("rescues", session.rescues)
      .Add("commands", session.commands)
      .Add("memory_bytes", session.memory_bytes)
      .Add("memory_quota_bytes", session.memory_quota_bytes)
      .Add("opened_ns", session.opened)
      .Text();
}

std::string Json(const admin::Module& module) {
  return Object()
      .Add("session", module.session)
      .Add("session_name", module.session_name)
      .Add("module", module.module)
      .Raw("kernels", List(module.kernels))
      .Text();
}

std::string Json(const admin::Policy& policy) {
  return Object()
      .Add("kind", policy.kind)
      .Add("parameters", policy.parameters)
      .Add("generation", policy.generation)
      .Add("source", policy.source)
      .Add("etag", policy.etag)
      .Add("since_unix_ns", policy.since_unix_ns)
      .Add("expires_unix_ns", policy.expires_unix_ns)
      .Add("file_differs", policy.file_differs)
      .Add("note", policy.note)
      .Add("honoured", policy.honoured)
      .Text();
}

std::string Json(const admin::PolicyKind& kind) {
  return Object()
      .Add("kind", kind.kind)
      .Add("promise", kind.promise)
      .Raw("parameters", List(kind.parameters))
      .Add("honoured", kind.honoured)
      .Text();
}

std::string Json(const admin::Reloaded& reloaded) {
  return Object()
      .Add("changed", reloaded.changed)
      .Add("needs_restart", reloaded.needs_restart)
      .Text();
}

std::string Json(const admin::Snapshot& snapshot) {
  return Object()
      .Add("time_ns", snapshot.time)
      .Raw("policy", Json(snapshot.policy))
      .Raw("devices", Json(snapshot.devices))
      .Raw("sessions", Json(snapshot.sessions))
      .Text();
}

std::string Json(const admin::Slice& slice) {
  return Object()
      .Add("device", slice.device)
      .Add("session", slice.session)
      .Add("generation", slice.generation)
      .Add("started_ns", slice.started)
      .Add("ended_ns", slice.ended)
      .Add("granted_ns", slice.granted)
      .Add("charged_ns", slice.charged)
      .Add("commands", slice.commands)
      .Add("rescue", slice.rescue)
      .Add("end", Words(slice.end))
      .Text();
}

std::string Json(const Status& status, const admin::FieldErrors& fields) {
  const std::string error = Object()
                                .Add("code", ToString(status.code()))
                                .Add("reason", status.reason())
                                .Add("message", status.message())
                                .Raw("fields", List(fields))
                                .Text();
  return Object().Raw("error", error).Text();
}

}  // namespace gpusched::ctl
