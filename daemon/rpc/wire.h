// Between the session protocol's messages and the executor's plain values.
#pragma once

#include <cstdint>

#include "executor/messages.h"
#include "gpusched/status.h"
#include "gpusched/v1/error.pb.h"
#include "gpusched/v1/resources.pb.h"
#include "gpusched/v1/session.pb.h"

namespace gpusched::rpc {

inline constexpr std::uint32_t kProtocolVersion = 1;
// session.proto's own bounds.
inline constexpr std::size_t kFrameBytes = 2 << 20;
inline constexpr std::size_t kPieceBytes = 1 << 20;

// Moves what is large out of `from`. MALFORMED_FRAME where a message is empty or of a later
// version.
Status Decode(v1::ClientMessage& from, executor::ClientMessage& to);

// Results are not encoded here: they leave in pieces (outbox.h).
void Encode(const executor::JobReport& from, v1::ServerMessage& to);
void Encode(const executor::Welcome& from, v1::ServerMessage& to);
void Encode(const executor::ModuleLoaded& from, v1::ServerMessage& to);
void Encode(const executor::Answer& from, v1::ServerMessage& to);
void Encode(const executor::Ended& from, v1::ServerMessage& to);

void EncodeError(const Status& from, v1::Error& to);
void EncodeShare(const Share& from, v1::Share& to);
void EncodeDevice(const device::DeviceInfo& from, std::uint32_t index, Duration preemption_bound,
                  v1::Device& to);
void EncodeKernel(const device::KernelInfo& from, v1::Kernel& to);

}  // namespace gpusched::rpc
