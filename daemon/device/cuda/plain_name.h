// The name a kernel has in its source, from the one the compiler made of it.
#pragma once

#include <string>

namespace gpusched::device {

// "saxpy" of "_Z5saxpyfPf", "ns::scale<float>" of "_ZN2ns5scaleIfEEvPf"; "" of what is no C++ name.
std::string PlainName(const std::string& mangled);

}  // namespace gpusched::device
