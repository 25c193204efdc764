// What the operator's calls answer, as JSON for scripts: times in nanoseconds, names as in the
// protos.
#pragma once

#include <string>
#include <vector>

#include "ctl/admin_client.h"

namespace gpusched::ctl {

std::string Json(const admin::Device& device);
std::string Json(const admin::Session& session);
std::string Json(const admin::Module& module);
std::string Json(const admin::Policy& policy);
std::string Json(const admin::PolicyKind& kind);
std::string Json(const admin::Reloaded& reloaded);
std::string Json(const admin::Snapshot& snapshot);
std::string Json(const admin::Slice& slice);
// {"error": {"code": ..., "reason": ..., "message": ..., "fields": [...]}}
std::string Json(const Status& status, const admin::FieldErrors& fields);

template <typename T>
std::string Json(const std::vector<T>& items) {
  std::string text = "[";
  for (const T& item : items) text += (text.size() > 1 ? ", " : "") + Json(item);
  return text + "]";
}

}  // namespace gpusched::ctl
