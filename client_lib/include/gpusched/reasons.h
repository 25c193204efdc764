// The stable reasons a Status may carry: the one table, for client and daemon alike.
#pragma once

#include <string_view>

namespace gpusched::reason {

// The frame or its order.
inline constexpr std::string_view kMalformedFrame = "MALFORMED_FRAME";
inline constexpr std::string_view kFrameTooLarge = "FRAME_TOO_LARGE";
inline constexpr std::string_view kHelloExpected = "HELLO_EXPECTED";
inline constexpr std::string_view kVersionMismatch = "VERSION_MISMATCH";
inline constexpr std::string_view kIdInUse = "ID_IN_USE";
inline constexpr std::string_view kDataOutOfOrder = "DATA_OUT_OF_ORDER";
inline constexpr std::string_view kClientTooSlow = "CLIENT_TOO_SLOW";

// Things that do not exist.
inline constexpr std::string_view kUnknownDevice = "UNKNOWN_DEVICE";
inline constexpr std::string_view kUnknownSession = "UNKNOWN_SESSION";
inline constexpr std::string_view kUnknownModule = "UNKNOWN_MODULE";
inline constexpr std::string_view kUnknownKernel = "UNKNOWN_KERNEL";
inline constexpr std::string_view kUnknownBuffer = "UNKNOWN_BUFFER";
inline constexpr std::string_view kUnknownTemplate = "UNKNOWN_TEMPLATE";
inline constexpr std::string_view kUnknownQueue = "UNKNOWN_QUEUE";
inline constexpr std::string_view kUnknownJob = "UNKNOWN_JOB";
inline constexpr std::string_view kAmbiguousName = "AMBIGUOUS_NAME";

// What a job or module asks for.
inline constexpr std::string_view kArgumentCount = "ARGUMENT_COUNT";
inline constexpr std::string_view kArgumentKind = "ARGUMENT_KIND";
inline constexpr std::string_view kArgumentSize = "ARGUMENT_SIZE";
inline constexpr std::string_view kMisaligned = "MISALIGNED";
inline constexpr std::string_view kBadGrid = "BAD_GRID";
inline constexpr std::string_view kBadBlock = "BAD_BLOCK";
inline constexpr std::string_view kBadOffset = "BAD_OFFSET";
inline constexpr std::string_view kLocalMemory = "LOCAL_MEMORY";
inline constexpr std::string_view kOutOfBounds = "OUT_OF_BOUNDS";
inline constexpr std::string_view kBadModule = "BAD_MODULE";
inline constexpr std::string_view kBuildFailed = "BUILD_FAILED";
inline constexpr std::string_view kNoUsableImage = "NO_USABLE_IMAGE";
inline constexpr std::string_view kEmptyJob = "EMPTY_JOB";
inline constexpr std::string_view kBadShare = "BAD_SHARE";
inline constexpr std::string_view kMinOversubscribed = "MIN_OVERSUBSCRIBED";
inline constexpr std::string_view kAboveConfiguredCap = "ABOVE_CONFIGURED_CAP";

// Bounds.
inline constexpr std::string_view kWindowExceeded = "WINDOW_EXCEEDED";
inline constexpr std::string_view kStagingExceeded = "STAGING_EXCEEDED";
inline constexpr std::string_view kQuotaExceeded = "QUOTA_EXCEEDED";
inline constexpr std::string_view kDeviceMemory = "DEVICE_MEMORY";
inline constexpr std::string_view kTooMany = "TOO_MANY";

// What became of a job or session.
inline constexpr std::string_view kCancelled = "CANCELLED";
inline constexpr std::string_view kSkippedLate = "SKIPPED_LATE";
inline constexpr std::string_view kKilled = "KILLED";
inline constexpr std::string_view kSessionClosed = "SESSION_CLOSED";
inline constexpr std::string_view kDraining = "DRAINING";
inline constexpr std::string_view kDeviceFailed = "DEVICE_FAILED";
inline constexpr std::string_view kDeviceLost = "DEVICE_LOST";
inline constexpr std::string_view kDependencyFailed = "DEPENDENCY_FAILED";

// Policies and configuration.
inline constexpr std::string_view kUnknownPolicy = "UNKNOWN_POLICY";
inline constexpr std::string_view kBadParameter = "BAD_PARAMETER";
inline constexpr std::string_view kEtagMismatch = "ETAG_MISMATCH";
inline constexpr std::string_view kUnknownGeneration = "UNKNOWN_GENERATION";
inline constexpr std::string_view kBadConfiguration = "BAD_CONFIGURATION";
inline constexpr std::string_view kNeedsRestart = "NEEDS_RESTART";
inline constexpr std::string_view kInsecureEndpoint = "INSECURE_ENDPOINT";
inline constexpr std::string_view kSocketInUse = "SOCKET_IN_USE";

// The client's own side.
inline constexpr std::string_view kDaemonUnreachable = "DAEMON_UNREACHABLE";
inline constexpr std::string_view kDaemonLost = "DAEMON_LOST";
inline constexpr std::string_view kWaitTimedOut = "WAIT_TIMED_OUT";
inline constexpr std::string_view kForked = "FORKED";
inline constexpr std::string_view kMovedFrom = "MOVED_FROM";

}  // namespace gpusched::reason
