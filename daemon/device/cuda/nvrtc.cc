// Finds the library once, then compiles program by program.
#include "device/cuda/nvrtc.h"

#include <dlfcn.h>
#include <nvrtc.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

// A compiler can say more about one line than anybody reads.
constexpr std::size_t kMostLogBytes = 16 * 1'024;

struct Nvrtc {
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcGetPTXSize) ptx_size = nullptr;
  decltype(&nvrtcGetPTX) ptx = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetNumSupportedArchs) architectures = nullptr;
  decltype(&nvrtcGetSupportedArchs) list_architectures = nullptr;
  decltype(&nvrtcGetErrorString) error_text = nullptr;
  bool complete = false;
};

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Nvrtc Open() {
  Nvrtc found;
  void* library = nullptr;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) return found;
  found.complete = Find(library, "nvrtcCreateProgram", found.create) &&
                   Find(library, "nvrtcCompileProgram", found.compile) &&
                   Find(library, "nvrtcDestroyProgram", found.destroy) &&
                   Find(library, "nvrtcGetPTXSize", found.ptx_size) &&
                   Find(library, "nvrtcGetPTX", found.ptx) &&
                   Find(library, "nvrtcGetProgramLogSize", found.log_size) &&
                   Find(library, "nvrtcGetProgramLog", found.log) &&
                   Find(library, "nvrtcGetNumSupportedArchs", found.architectures) &&
                   Find(library, "nvrtcGetSupportedArchs", found.list_architectures) &&
                   Find(library, "nvrtcGetErrorString", found.error_text);
  return found;
}

// The newest that both know; `sm` itself where the compiler does not say.
std::uint32_t TargetFor(const Nvrtc& nvrtc, std::uint32_t sm) {
  int count = 0;
  if (nvrtc.architectures(&count) != NVRTC_SUCCESS || count < 1) return sm;
  std::vector<int> known(static_cast<std::size_t>(count));
  if (nvrtc.list_architectures(known.data()) != NVRTC_SUCCESS) return sm;
  std::uint32_t best = 0;
  for (const int each : known) {
    const auto architecture = static_cast<std::uint32_t>(each);
    if (architecture <= sm && architecture > best) best = architecture;
  }
  return best == 0 ? sm : best;
}

std::string LogOf(const Nvrtc& nvrtc, nvrtcProgram program) {
  std::size_t size = 0;
  if (nvrtc.log_size(program, &size) != NVRTC_SUCCESS || size < 2) return "no log";
  std::string log(size, '\0');
  if (nvrtc.log(program, log.data()) != NVRTC_SUCCESS) return "no log";
  log.resize(std::min(size - 1, kMostLogBytes));
  return log;
}

Result<std::string> Compile(const Nvrtc& nvrtc, nvrtcProgram program, std::uint32_t sm) {
  const std::string architecture =
      "--gpu-architecture=compute_" + std::to_string(TargetFor(nvrtc, sm));
  const std::array<const char*, 2> options = {architecture.c_str(), "--std=c++17"};
  const nvrtcResult compiled =
      nvrtc.compile(program, static_cast<int>(options.size()), options.data());
  if (compiled != NVRTC_SUCCESS) {
    return Status(StatusCode::kInvalidArgument, reason::kBuildFailed,
                  std::string("the CUDA compiler says ") + nvrtc.error_text(compiled) + ": " +
                      LogOf(nvrtc, program));
  }
  std::size_t size = 0;
  std::string text;
  if (nvrtc.ptx_size(program, &size) == NVRTC_SUCCESS) {
    text.resize(size);
    if (nvrtc.ptx(program, text.data()) == NVRTC_SUCCESS && size > 1) return text;
  }
  return Status(StatusCode::kInvalidArgument, reason::kBuildFailed,
                "the CUDA compiler gave no PTX: " + LogOf(nvrtc, program));
}

}  // namespace

Result<std::string> CompileCudaSource(const std::string& source, std::uint32_t sm) {
  static const Nvrtc nvrtc = Open();
  if (!nvrtc.complete) {
    return Status(StatusCode::kUnimplemented, reason::kNoUsableImage,
                  "no libnvrtc.so is installed to compile it (the CUDA toolkit has it, and the "
                  "package cuda-nvrtc)");
  }
  nvrtcProgram program = nullptr;
  if (const nvrtcResult made =
          nvrtc.create(&program, source.c_str(), "module.cu", 0, nullptr, nullptr);
      made != NVRTC_SUCCESS) {
    return Status(StatusCode::kInvalidArgument, reason::kBuildFailed,
                  std::string("the CUDA compiler says ") + nvrtc.error_text(made));
  }
  Result<std::string> text = Compile(nvrtc, program, sm);
  nvrtc.destroy(&program);
  return text;
}

}  // namespace gpusched::device
