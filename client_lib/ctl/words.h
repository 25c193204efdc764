// What a person reads in the operator's tool: shares, times and reasons in words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/admin_client.h"

namespace gpusched::ctl {

std::string_view Words(admin::SliceEnd end);
// "weight 70, max 50 %, priority 10, target 20ms": what differs from the defaults, and the weight.
// Fields that the policy in force ignores stand in brackets.
std::string ShareWords(const admin::Share& share, const std::vector<std::string>& honoured);
std::string Percent(double fraction);         // "33.3 %"
std::string WallClock(std::int64_t unix_ns);  // local time, "2024-05-01 13:00:00"
// "slice=1ms window=100ms"
std::string ParameterWords(const admin::Parameters& parameters);

// "weighted_share window=200ms", or with commas between them, -> a kind and its parameters.
// INVALID_ARGUMENT where a word is neither, it or a key is empty, a key is given twice, or text is
// not UTF-8.
Status ParsePolicy(const std::vector<std::string>& words, std::string* kind,
                   admin::Parameters* parameters);
// The failure, then a line for each fault that it does not tell itself.
std::string FailureWords(const Status& status, const admin::FieldErrors& fields);

// What a session did between two snapshots.
struct Period {
  admin::Session session;     // as it was at the end
  double declared = 0;        // its part of the device if all sessions had work
  double asked = 0, got = 0;  // parts of the device in the period
  std::uint64_t finished = 0, late = 0;
  bool whole = true;  // it was open from the beginning on
};
std::vector<Period> Compare(const admin::Snapshot& before, const admin::Snapshot& after);
// What holds a session back that could run otherwise: its own max, or strict sessions' min.
std::string LimitWords(const admin::Session& session);
// Why what it got is not what it declared, in words; "" where it is.
std::string Why(const Period& period, const admin::Policy& policy);

// Each session's part of its device if all had work: weights water-filled between min and max (the
// level is found by halving); by session.
std::map<std::uint64_t, double> DeclaredParts(const std::vector<admin::Session>& sessions,
                                              const admin::Policy& policy);

}  // namespace gpusched::ctl
