// What a person reads in the operator's tool.
#include "ctl/words.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "gpusched/reasons.h"
#include "gpusched/units.h"
#include "gpusched/utf8.h"

namespace gpusched::ctl {
namespace {

// Smaller differences are noise over a second: one point is what the policies promise.
constexpr double kPoint = 0.01;

bool Honours(const std::vector<std::string>& honoured, std::string_view field) {
  return std::find(honoured.begin(), honoured.end(), field) != honoured.end();
}

// Words are separated by spaces or, as on the command lines of gpuschedd and gpusched-sim, commas.
std::vector<std::string> PartsOf(const std::vector<std::string>& words) {
  std::vector<std::string> parts;
  for (const std::string& word : words) {
    for (std::size_t start = 0; start <= word.size();) {
      const std::size_t end = std::min(word.find(',', start), word.size());
      parts.push_back(word.substr(start, end - start));
      start = end + 1;
    }
  }
  return parts;
}

}  // namespace

std::string_view Words(admin::SliceEnd end) {
  switch (end) {
    case admin::SliceEnd::kExpired: return "expired";
    case admin::SliceEnd::kRanDry: return "ran dry";
    case admin::SliceEnd::kPreempted: return "preempted";
    case admin::SliceEnd::kWithdrawn: return "withdrawn";
  }
  return "";
}

std::string Percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", fraction * 100);
  return text;
}

std::string ShareWords(const admin::Share& share, const std::vector<std::string>& honoured) {
  std::string words;
  const auto add = [&](const char* field, const std::string& text) {
    if (!words.empty()) words += ", ";
    words += Honours(honoured, field) ? text : "(" + text + ")";
  };
  add("weight", "weight " + std::to_string(share.weight));
  if (share.min != 0) add("min", "min " + Percent(share.min));
  if (share.max != 1) add("max", "max " + Percent(share.max));
  if (share.strict) add("strict", "strict");
  if (share.priority != 0) add("priority", "priority " + std::to_string(share.priority));
  if (share.latency_target.count() != 0) {
    add("latency_target", "target " + FormatDuration(share.latency_target));
  }
  return words;
}

std::string WallClock(std::int64_t unix_ns) {
  const std::time_t seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

std::string ParameterWords(const admin::Parameters& parameters) {
  std::string words;
  for (const auto& [key, value] : parameters)
    words += (words.empty() ? "" : " ") + key + "=" + value;
  return words;
}

std::map<std::uint64_t, double> DeclaredParts(const std::vector<admin::Session>& sessions,
                                              const admin::Policy& policy) {
  const bool weighted = Honours(policy.honoured, "weight");
  std::map<std::uint64_t, double> parts;
  std::map<std::string, std::vector<const admin::Session*>> devices;
  for (const admin::Session& session : sessions) devices[session.device].push_back(&session);
  for (const auto& [device, here] : devices) {
    const auto part = [weighted](const admin::Session& session, double level) {
      const double weight = weighted ? session.share.weight : 1;
      const double min = weighted || session.share.strict ? session.share.min : 0;
      return std::clamp(weight * level, min, std::max(min, session.share.max));
    };
    double low = 0, high = 1;  // of the level: a weight is at least 1, a part at most 1
    for (int i = 0; i < 60; ++i) {
      const double level = (low + high) / 2;
      double sum = 0;
      for (const admin::Session* session : here) sum += part(*session, level);
      (sum > 1 ? high : low) = level;
    }
    for (const admin::Session* session : here) parts[session->id] = part(*session, low);
  }
  return parts;
}

Status ParsePolicy(const std::vector<std::string>& words, std::string* kind,
                   admin::Parameters* parameters) {
  const auto bad = [](std::string why) {
    return Status(StatusCode::kInvalidArgument, reason::kBadParameter, std::move(why));
  };
  for (const std::string& word : PartsOf(words)) {
    if (FirstNotUtf8(word)) return bad("a word of the policy is not UTF-8");
    if (word.empty()) {
      return bad("an empty word is no policy: write KIND, key=value, or KIND and then key=value");
    }
    const std::size_t equals = word.find('=');
    if (equals == 0) return bad("'" + word + "' names no parameter before its '='");
    if (equals != std::string::npos) {
      const auto [at, added] = parameters->emplace(word.substr(0, equals), word.substr(equals + 1));
      if (!added) {
        return bad("'" + at->first + "' is given twice, as '" + at->second + "' and in '" + word +
                   "'");
      }
    } else if (kind->empty()) {
      *kind = word;
    } else {
      return bad("'" + word + "' is no key=value, and the kind was given as '" + *kind + "'");
    }
  }
  return Status::Ok();
}

std::string FailureWords(const Status& status, const admin::FieldErrors& fields) {
  std::string text = status.ToString();
  const auto told = [&status](const std::string& part) {
    return status.message().find(part) != std::string::npos;
  };
  for (const admin::FieldError& field : fields) {
    std::string place;
    if (field.line > 0) {
      place = "line " + std::to_string(field.line) + ", column " + std::to_string(field.column);
    }
    if (told(field.message) && told(place) && told(field.field)) continue;
    text += "\n  " + field.field + (place.empty() ? "" : " (" + place + ")") + ": " + field.message;
  }
  return text;
}

std::vector<Period> Compare(const admin::Snapshot& before, const admin::Snapshot& after) {
  const double length = static_cast<double>((after.time - before.time).count());
  const std::map<std::uint64_t, double> declared = DeclaredParts(after.sessions, after.policy);
  std::vector<Period> periods;
  for (const admin::Session& now : after.sessions) {
    Period period{.session = now, .declared = declared.at(now.id)};
    admin::Session then;  // all zero where it has been opened since
    const auto found = std::find_if(before.sessions.begin(), before.sessions.end(),
                                    [&now](const admin::Session& s) { return s.id == now.id; });
    period.whole = found != before.sessions.end();
    if (period.whole) then = *found;
    if (length > 0) {
      period.got = static_cast<double>((now.charged - then.charged).count()) / length;
      period.asked = static_cast<double>((now.asked - then.asked).count()) / length;
    }
    const auto finished = [](const admin::Session& s) {
      return s.jobs_done + s.jobs_failed + s.jobs_cancelled + s.jobs_skipped;
    };
    period.finished = finished(now) - finished(then);
    period.late = now.jobs_late - then.jobs_late;
    periods.push_back(std::move(period));
  }
  return periods;
}

std::string Why(const Period& period, const admin::Policy& policy) {
  const admin::Session& session = period.session;
  std::vector<std::string> reasons;
  if (session.paused) reasons.push_back("paused by the operator");
  if (!period.whole) reasons.push_back("just opened");
  if (!session.shares_promised) {
    reasons.push_back(policy.kind + " promises no shares");
  } else if (period.whole && !session.paused) {
    // Its rate is at least its declared part whenever it has work, so what it asked for less is
    // time without work.
    if (period.asked < period.declared - kPoint) {
      const double without = 1 - period.asked / period.declared;
      reasons.push_back("did not fill its share: no work " +
                        std::to_string(std::lround(without * 100)) + " % of the time");
    } else if (period.asked > period.declared + kPoint) {
      reasons.push_back("lent " + Percent(period.asked - period.declared) +
                        " that others left unused");
    }
    if (period.got < period.asked - kPoint && !session.at_cap) {
      reasons.push_back("is owed " + FormatDuration(session.lag));
    } else if (period.got > period.asked + kPoint) {
      reasons.push_back(session.lag.count() < 0 ? "ahead, pays back next"
                                                : "is paid back what it was owed");
    }
  }
  if (session.at_cap) reasons.push_back(LimitWords(session));
  std::string words;
  for (const std::string& reason : reasons) words += (words.empty() ? "" : "; ") + reason;
  return words;
}

std::string LimitWords(const admin::Session& session) {
  return session.share.max < 1 ? "at its max" : "strict sessions keep the rest free";
}

}  // namespace gpusched::ctl
