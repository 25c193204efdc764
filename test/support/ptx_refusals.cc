// One table: the fixture and the words its refusal must hold.
#include "support/ptx_refusals.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "device/cuda/ptx/rewrite.h"

namespace gpusched::test {
namespace {

struct Expectation {
  const char* fixture;
  const char* words;
};
constexpr Expectation kExpectations[] = {
    {"spin_register", "ends only when memory changes"},
    {"spin_acquire", "ends only when memory changes"},
    {"spin_shared", "ends only when memory changes"},
    {"spin_plain", "ends only when memory changes"},
    {"spin_call", "may wait for what another block writes"},
    {"spin_branch", "may wait for what another block writes"},
    {"spin_add_zero", "may wait for what another block writes"},
    {"lock", "may wait for what another block writes"},
    {"look_back", "ends only when memory changes"},
    {"recursion", "calls itself and reads what others write"},
    {"grid_sync", "grid sync"},
    {"clusters", "clusters of blocks"},
    {"cluster_launch", "clusters of blocks"},
    {"dynamic_parallelism", "dynamic parallelism"},
    {"no_body", "whose body is not in the module"},
    {"full_shared", "static shared memory"},
    {"vector_id", "a form that cannot be rewritten"},
    {"colour_component", "a form that cannot be rewritten"},
    {"odd_use", "a form that cannot be rewritten"},
};

}  // namespace

Result<std::vector<Refusal>> CheckRefusals(const std::string& folder) {
  std::vector<Refusal> refusals;
  for (const Expectation& each : kExpectations) {
    std::ifstream file(folder + "/" + each.fixture + ".ptx", std::ios::binary);
    if (!file) {
      return Status(StatusCode::kNotFound, "NO_FILE",
                    "cannot read '" + folder + "/" + each.fixture + ".ptx'");
    }
    Result<device::ptx::Rewritten> rewritten =
        device::ptx::Rewrite(std::string(std::istreambuf_iterator<char>(file), {}));
    if (!rewritten.ok()) return rewritten.status();
    Refusal refusal{.fixture = each.fixture, .expected = each.words, .reason = {}};
    for (const device::ptx::RewrittenKernel& kernel : rewritten->kernels) {
      if (kernel.verdict.cut == device::ptx::Cut::kWhole) refusal.reason = kernel.verdict.reason;
    }
    refusals.push_back(std::move(refusal));
  }
  return refusals;
}

}  // namespace gpusched::test
