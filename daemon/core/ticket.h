// The name of a command in flight: given out by the core, never zero, never reused while in flight.
#pragma once

#include <cstdint>

namespace gpusched::core {

enum class Ticket : std::uint64_t {};

}  // namespace gpusched::core
