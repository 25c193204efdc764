// Leaves out what stands before and behind the name proper: result type and parameters.
#include "device/cuda/plain_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace gpusched::device {
namespace {

// Longer names come from templates nobody writes out; demangling them takes memory without bound.
constexpr std::size_t kLongestMangled = 1'024;

}  // namespace

std::string PlainName(const std::string& mangled) {
  if (!mangled.starts_with("_Z") || mangled.size() > kLongestMangled) return "";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || demangled == nullptr) return "";
  const std::string_view text = demangled.get();
  // The parameters begin at the first '(' outside of template arguments; a result type, which only
  // templates show, ends at the last space before.
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '<') ++depth;
    if (text[at] == '>') --depth;
    if (depth != 0) continue;
    if (text[at] == ' ') begin = at + 1;
    if (text[at] == '(') return std::string(text.substr(begin, at - begin));
  }
  return "";
}

}  // namespace gpusched::device
