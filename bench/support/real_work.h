// The samples' services as work of the main job: kernels that compute, sized on first use.
#pragma once

#include "ctl/admin_client.h"
#include "support/work.h"

namespace gpusched::bench {

// The first to be made of each finds the size of its jobs and measures their kernel time, so it
// must have the device to itself; those made later take both over.
struct RealWork {
  MakeWork requests, update;
};

// Requests of 8 ms in launches of 1 ms; gradient steps of 50 ms in two long launches and a few
// short ones.
RealWork RecommendationWork(admin::AdminClient& admin);
// Frames of 10 ms in launches of 1 ms; analyses of 300 ms.
RealWork GameWork(admin::AdminClient& admin);

// What the kernels of a job take, alone, of several runs a short one.
Result<Duration> KernelTimeAlone(admin::AdminClient& admin, const Session& session,
                                 const std::function<Result<Submission>()>& submit);

}  // namespace gpusched::bench
