// Where this machine keeps piglit's OpenCL files, unpacked if only the Debian package is there.
#pragma once

#include <string>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::bench {

// All .cl files, sorted: of the folder or package that GPUSCHED_PIGLIT names, else of a package
// piglit*.deb in this build's folder, in the folder of builds or below it. NOT_FOUND says how to
// get one.
Result<std::vector<std::string>> PiglitFiles();

}  // namespace gpusched::bench
