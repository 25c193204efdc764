// From the best image to kernels that can be launched; what does not work is tried another way.
#include "device/cuda/cuda_module.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "device/cuda/error.h"
#include "device/cuda/plain_name.h"
#include "device/cuda/pointer_parameters.h"
#include "device/cuda/ptx/cubin.h"
#include "device/cuda/ptx/rewrite.h"
#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

// What the driver may say about one image.
constexpr std::size_t kLogBytes = 8 * 1'024;
// Where an image tells no parameters, the driver is asked for one after the other, up to so many.
constexpr std::size_t kMostParameters = 1'024;

// A kernel as its image tells it.
struct Told {
  KernelInfo info{};
  CudaKernel launch{};
  std::string remark{};  // what is to be known of a kernel that may be cut
  bool has_parameters = true;
};

// A 64-bit number may be an address: where the image does not tell, both are taken.
void AddParameter(Told& told, std::uint32_t offset, std::uint32_t size, std::string_view name,
                  bool pointer) {
  Parameter parameter;
  parameter.kind = size == 8 ? Parameter::Kind::kBuffer : Parameter::Kind::kValue;
  parameter.size = pointer ? 0 : size;
  // Compilers number parameters instead of naming them.
  if (name.find("_param_") == std::string_view::npos) parameter.name = name;
  told.info.parameters.push_back(std::move(parameter));
  told.launch.offsets.push_back(offset);
  told.launch.sizes.push_back(size);
  told.launch.parameter_bytes = offset + size;
}

void TellHowItIsCut(const ptx::RewrittenKernel& kernel, Told& told) {
  told.launch.boxed = kernel.boxed;
  told.launch.box_offset = kernel.box_offset;
  told.info.cuttable = kernel.boxed && kernel.verdict.cut != ptx::Cut::kWhole;
  if (told.info.cuttable) {
    told.remark = kernel.verdict.reason;
    return;
  }
  told.info.whole_reason =
      kernel.verdict.reason.empty() ? "it cannot be rewritten" : kernel.verdict.reason;
}

// Its kernels as the text tells them; `rewritten` where that is what will be loaded.
std::vector<Told> Tell(const ptx::Module& module, const ptx::Rewritten* rewritten,
                       const std::string& why_whole) {
  std::vector<Told> kernels;
  for (const ptx::Function& function : module.functions()) {
    if (!function.is_entry || !function.has_body || function.opaque_parameters) continue;
    Told told;
    told.info.name = function.name;
    told.info.required_block = function.required_block;
    told.info.whole_reason = why_whole;
    const std::vector<bool> pointers = PointerParameters(module, function);
    for (std::size_t i = 0; i < function.parameters.size(); ++i) {
      const ptx::EntryParameter& parameter = function.parameters[i];
      AddParameter(told, parameter.offset, parameter.size, parameter.name, pointers[i]);
    }
    if (rewritten != nullptr) {
      for (const ptx::RewrittenKernel& kernel : rewritten->kernels) {
        if (kernel.name == told.info.name) TellHowItIsCut(kernel, told);
      }
    }
    kernels.push_back(std::move(told));
  }
  return kernels;
}

std::vector<Told> Tell(const ptx::CubinInfo& cubin) {
  std::vector<Told> kernels;
  for (const ptx::CubinKernel& each : cubin.kernels) {
    Told told;
    told.info.name = each.name;
    told.info.required_block = each.required_block;
    told.info.whole_reason = "it is machine code without PTX, which cannot be rewritten";
    told.has_parameters = each.has_layout;
    for (const ptx::CubinParameter& parameter : each.parameters) {
      AddParameter(told, parameter.offset, parameter.size, "", false);
    }
    kernels.push_back(std::move(told));
  }
  return kernels;
}

// "_Z5saxpyfPf" goes by "saxpy", too, where no other kernel could be meant.
void AddPlainNames(CudaModule& module) {
  const std::size_t kernels = module.kernels.size();
  std::map<std::string, std::size_t> uses;
  std::vector<std::string> plain(kernels);
  for (std::size_t i = 0; i < kernels; ++i) {
    ++uses[module.info.kernels[i].name];
    plain[i] = PlainName(module.info.kernels[i].name);
    if (!plain[i].empty()) ++uses[plain[i]];
  }
  for (std::size_t i = 0; i < kernels; ++i) {
    if (plain[i].empty() || uses[plain[i]] > 1) continue;
    KernelInfo again = module.info.kernels[i];
    again.name = plain[i];
    module.info.kernels.push_back(std::move(again));
    CudaKernel launch = module.kernels[i];
    module.kernels.push_back(std::move(launch));
  }
}

class Loader {
 public:
  Loader(const ModuleTarget& target, ContextHealth& health) : target_(target), health_(health) {}

  Result<CudaModule> Load(const UsableImage& image) {
    switch (image.kind) {
      case UsableImage::Kind::kPtx: return LoadPtx(image);
      case UsableImage::Kind::kElf: break;
    }
    const Result<ptx::CubinInfo> cubin = ptx::ParseCubin(image.bytes);
    if (!cubin.ok()) return Bad(image, cubin.status().message());
    return Load(image, image.bytes, Tell(*cubin));
  }

 private:
  static Status Bad(const UsableImage& image, const std::string& what) {
    return Status(StatusCode::kInvalidArgument, reason::kBadModule, image.from + ": " + what);
  }

  Result<CudaModule> LoadPtx(const UsableImage& image) {
    const Result<ptx::Module> module = ptx::Module::Parse(image.bytes);
    if (!module.ok()) return Bad(image, module.status().message());
    const Result<ptx::Rewritten> rewritten = ptx::Rewrite(*module);
    std::string why = rewritten.ok() ? "" : rewritten.status().message();
    if (rewritten.ok()) {
      Result<CudaModule> cut = Load(image, rewritten->text, Tell(*module, &*rewritten, ""));
      if (cut.ok() || health_.broken()) return cut;
      why = "the driver does not take the rewritten text: " + cut.status().message();
    }
    // When in doubt the original runs whole.
    return Load(image, image.bytes, Tell(*module, nullptr, why));
  }

  Result<CudaModule> Load(const UsableImage& image, const std::string& code,
                          std::vector<Told> kernels) {
    if (kernels.empty()) return Bad(image, "it has no kernel that can be launched");
    CudaModule module;
    if (Status status = LoadCode(image, code, module.library); !status.ok()) return status;
    for (Told& told : kernels) {
      const cudaError_t error = health_.Seen(
          "loading a module",
          cudaLibraryGetKernel(&told.launch.handle, module.library.get(), told.info.name.c_str()));
      Status status = error == cudaSuccess
                          ? Ask(told)
                          : CudaFailure("finding kernel '" + told.info.name + "'", error);
      if (!status.ok()) return status;
      if (!told.remark.empty()) {
        module.info.build_log += "kernel '" + told.info.name + "': " + told.remark + "\n";
      }
      module.info.kernels.push_back(std::move(told.info));
      module.kernels.push_back(std::move(told.launch));
    }
    AddPlainNames(module);
    return module;
  }

  Status LoadCode(const UsableImage& image, const std::string& code, LibraryHandle& library) {
    std::array<char, kLogBytes> log{};
    std::array options = {cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
    std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
    cudaLibrary_t loaded = nullptr;
    const bool text = image.kind == UsableImage::Kind::kPtx;
    const cudaError_t error =
        health_.Seen("loading a module",
                     cudaLibraryLoadData(&loaded, code.c_str(), text ? options.data() : nullptr,
                                         text ? values.data() : nullptr, text ? options.size() : 0,
                                         nullptr, nullptr, 0));
    if (error == cudaSuccess) {
      library.reset(loaded);
      return Status::Ok();
    }
    if (error == cudaErrorMemoryAllocation || IsSticky(error)) {
      return CudaFailure("loading " + image.from, error);
    }
    log.back() = '\0';
    return Bad(image, CudaFailure("loading it", error).message() +
                          (log[0] != '\0' ? "; the driver says: " + std::string(log.data()) : ""));
  }

  // What only the driver knows of a kernel.
  Status Ask(Told& told) {
    const void* const function = told.launch.handle;
    cudaFuncAttributes attributes{};
    if (const cudaError_t error =
            health_.Seen("loading a module", cudaFuncGetAttributes(&attributes, function));
        error != cudaSuccess) {
      return CudaFailure("asking about kernel '" + told.info.name + "'", error);
    }
    told.info.max_block_threads = static_cast<std::uint64_t>(attributes.maxThreadsPerBlock);
    told.info.static_local_bytes = attributes.sharedSizeBytes;
    told.launch.dynamic_limit =
        static_cast<std::uint64_t>(std::max(0, attributes.maxDynamicSharedSizeBytes));
    // More than the usual 48 KiB has to be asked for; where that is refused the usual remains.
    const std::uint64_t most = target_.block_shared_bytes -
                               std::min(target_.block_shared_bytes, attributes.sharedSizeBytes);
    if (most > told.launch.dynamic_limit &&
        health_.Seen("loading a module",
                     cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(most))) == cudaSuccess) {
      told.launch.dynamic_limit = most;
    }
    if (!told.has_parameters) AskForParameters(told);
    return Status::Ok();
  }

  void AskForParameters(Told& told) {
    for (std::size_t i = 0; i < kMostParameters; ++i) {
      std::size_t offset = 0, size = 0;
      if (health_.Seen("loading a module", cudaFuncGetParamInfo(told.launch.handle, i, &offset,
                                                                &size)) != cudaSuccess) {
        return;
      }
      AddParameter(told, static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size), "",
                   false);
    }
  }

  const ModuleTarget& target_;
  ContextHealth& health_;
};

}  // namespace

Result<CudaModule> LoadCudaModule(const std::vector<Image>& images, const ModuleTarget& target,
                                  ContextHealth& health) {
  const ImageChoice choice = ChooseImages(images, target.architecture);
  Status first = choice.broken;
  std::string tried;
  for (const UsableImage& image : choice.usable) {
    Result<CudaModule> module = Loader(target, health).Load(image);
    if (module.ok()) {
      module->info.build_log = tried + module->info.build_log;
      return module;
    }
    if (health.broken()) return module;
    tried += module.status().message() + "\n";
    if (first.ok()) first = module.status();
  }
  if (!first.ok()) return first;
  return Status(StatusCode::kInvalidArgument, reason::kNoUsableImage,
                "none of the module's images suits device " + target.uuid + ": " +
                    (choice.passed_over.empty() ? "there is none" : choice.passed_over) +
                    "; add PTX, a cubin or a fat binary for sm_" +
                    std::to_string(target.architecture.sm) + " or lower, or CUDA C++");
}

}  // namespace gpusched::device
