// The rules of a share, each with the words that say how to mend it.
#include "executor/admission.h"

#include <algorithm>
#include <string>

#include "gpusched/reasons.h"
#include "gpusched/units.h"

namespace gpusched::executor {
namespace {

std::string Fraction(Rate rate) {
  // Three decimals are what people write; sums are shown rounded up, so that 1.0004 is not "1.000".
  const Rate thousandths = (rate + 999'999) / 1'000'000;
  std::string decimals = std::to_string(thousandths % 1'000);
  decimals.insert(0, 3 - decimals.size(), '0');
  return std::to_string(thousandths / 1'000) + "." + decimals;
}

std::string Faults(const Share& share) {
  std::string faults;
  const auto add = [&faults](const std::string& fault) {
    if (!faults.empty()) faults += "; ";
    faults += fault;
  };
  if (share.weight < 1 || share.weight > 10'000) {
    add("weight is " + std::to_string(share.weight) + ", it must be 1 to 10000");
  }
  if (share.min < 0 || share.min > kWholeDevice) add("min must be a fraction from 0 to 1");
  if (share.max <= 0 || share.max > kWholeDevice) add("max must be a fraction above 0, up to 1");
  if (share.min > share.max && share.max > 0) {
    add("min " + Fraction(share.min) + " is greater than max " + Fraction(share.max));
  }
  if (share.strict && share.min <= 0) add("strict needs a min: it is what stays free");
  if (share.priority < -128 || share.priority > 127) {
    add("priority is " + std::to_string(share.priority) + ", it must be -128 to 127");
  }
  if (share.latency_target < Duration::zero()) add("latency_target is negative; 0 means none");
  return faults;
}

}  // namespace

Result<Share> Admit(const Share& declared, const SessionLimits& limits, Rate min_of_others) {
  if (const std::string faults = Faults(declared); !faults.empty()) {
    return Status(StatusCode::kInvalidArgument, reason::kBadShare, faults);
  }
  std::string passed;
  if (declared.priority > limits.max_priority) {
    passed = "priority " + std::to_string(declared.priority) + " is above sessions.max_priority " +
             std::to_string(limits.max_priority);
  }
  if (declared.min > limits.max_share) {
    if (!passed.empty()) passed += "; ";
    passed += "min " + Fraction(declared.min) + " is above sessions.max_share " +
              Fraction(limits.max_share);
  }
  if (!passed.empty()) {
    return Status(StatusCode::kPermissionDenied, reason::kAboveConfiguredCap,
                  passed + "; declare less or ask the operator");
  }
  if (declared.min > 0 && declared.min + min_of_others > kWholeDevice) {
    return Status(StatusCode::kResourceExhausted, reason::kMinOversubscribed,
                  "min " + Fraction(declared.min) + " beside " + Fraction(min_of_others) +
                      " promised to others would sum to " + Fraction(declared.min + min_of_others) +
                      " of the device; at most " +
                      Fraction((kWholeDevice - min_of_others) / 1'000'000 * 1'000'000) +
                      " is left");
  }
  Share granted = declared;
  granted.max = std::min(granted.max, limits.max_share);
  return granted;
}

Result<std::uint64_t> AdmitMemory(std::uint64_t asked, const SessionLimits& limits) {
  if (asked == 0) return limits.default_memory;
  if (limits.max_memory != 0 && asked > limits.max_memory) {
    return Status(StatusCode::kPermissionDenied, reason::kAboveConfiguredCap,
                  "memory " + FormatBytes(asked) + " is above sessions.max_memory " +
                      FormatBytes(limits.max_memory));
  }
  return asked;
}

}  // namespace gpusched::executor
