// What a promise of the OpenCL device says where there is no OpenCL.
#pragma once

#include "promises/promise.h"
#include "support/real_stage.h"

namespace gpusched::bench {

// Of a stage that could not be raised.
inline Result<Measurement> NotRun(const Status& why) {
  if (!RealStage::LacksPlatform(why)) return why;
  return Measurement{.figures = {},
                     .not_run = "no OpenCL platform: apt-get install pocl-opencl-icd",
                     .remark = {}};
}

}  // namespace gpusched::bench
