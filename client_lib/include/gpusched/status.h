// The typed outcome of a call: a code to branch on, a stable reason, a message that says what to
// do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace gpusched {

// The codes are gRPC's own, so that they pass the wire unchanged.
enum class StatusCode {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
};

constexpr std::string_view ToString(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return "OK";
    case StatusCode::kCancelled: return "CANCELLED";
    case StatusCode::kUnknown: return "UNKNOWN";
    case StatusCode::kInvalidArgument: return "INVALID_ARGUMENT";
    case StatusCode::kDeadlineExceeded: return "DEADLINE_EXCEEDED";
    case StatusCode::kNotFound: return "NOT_FOUND";
    case StatusCode::kAlreadyExists: return "ALREADY_EXISTS";
    case StatusCode::kPermissionDenied: return "PERMISSION_DENIED";
    case StatusCode::kResourceExhausted: return "RESOURCE_EXHAUSTED";
    case StatusCode::kFailedPrecondition: return "FAILED_PRECONDITION";
    case StatusCode::kAborted: return "ABORTED";
    case StatusCode::kOutOfRange: return "OUT_OF_RANGE";
    case StatusCode::kUnimplemented: return "UNIMPLEMENTED";
    case StatusCode::kInternal: return "INTERNAL";
    case StatusCode::kUnavailable: return "UNAVAILABLE";
  }
  return "UNKNOWN";
}

// `reason` is UPPER_SNAKE_CASE and stable (reasons.h lists them); `message` is for people.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string_view reason, std::string message)
      : code_(code), reason_(reason), message_(std::move(message)) {}
  static Status Ok() { return {}; }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& reason() const { return reason_; }
  const std::string& message() const { return message_; }
  // "NOT_FOUND (UNKNOWN_KERNEL): kernel 'saxpi' ..."; "OK" for success.
  std::string ToString() const {
    if (ok()) return "OK";
    return std::string(gpusched::ToString(code_)) + " (" + reason_ + "): " + message_;
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string reason_;
  std::string message_;
};

// A value, or the Status that says why there is none. Reading a value that is not there is a
// programming error and ends the process.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: a value is a result
  Result(Status status) : status_(std::move(status)) {  // NOLINT: so is a failure
    if (status_.ok()) status_ = Status(StatusCode::kInternal, "NO_VALUE", "result without a value");
  }

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }
  T& operator*() & { return value_.value(); }
  const T& operator*() const& { return value_.value(); }
  T&& operator*() && { return std::move(value_.value()); }
  T* operator->() { return &value_.value(); }
  const T* operator->() const { return &value_.value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace gpusched
