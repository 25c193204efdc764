// The daemon's version, as it tells clients and operators.
#pragma once

#include <string_view>

namespace gpusched::rpc {

inline constexpr std::string_view kVersion = GPUSCHED_VERSION;

}  // namespace gpusched::rpc
