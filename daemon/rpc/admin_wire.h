// Between what operators see and the Admin protocol's messages.
#pragma once

#include "control/policy_control.h"
#include "executor/slice_feed.h"
#include "executor/snapshot.h"
#include "gpusched/v1/admin.pb.h"

namespace gpusched::rpc {

void EncodePolicy(const control::PolicyRecord& from, bool file_differs, v1::Policy& to);
void EncodeSnapshotDevice(const executor::Snapshot& from, v1::Device& to);
void EncodeSession(const executor::SessionSnapshot& from, const executor::Snapshot& device,
                   v1::Session& to);
void EncodeSlice(const executor::FedSlice& from, v1::Slice& to);
void EncodeKinds(v1::ListPolicyKindsResponse& to);

}  // namespace gpusched::rpc
