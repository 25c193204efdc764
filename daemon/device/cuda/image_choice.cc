// Takes images apart until only PTX and machine code are left, then sorts.
#include "device/cuda/image_choice.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "device/cuda/nvrtc.h"
#include "device/cuda/ptx/cubin.h"
#include "device/cuda/ptx/fatbin.h"
#include "device/cuda/ptx/tokens.h"

namespace gpusched::device {
namespace {

struct Target {
  std::uint32_t sm = 0;
  bool exact = false;  // "sm_90a"
};

// What stands behind .target, read without parsing the whole text.
std::optional<Target> TargetOf(std::string_view text) {
  const std::size_t at = text.find(".target");
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t digit = text.find("sm_", at);
  if (digit == std::string_view::npos || text.find('\n', at) < digit) return std::nullopt;
  digit += 3;
  Target target;
  while (digit < text.size() && text[digit] >= '0' && text[digit] <= '9' && target.sm < 1'000) {
    target.sm = target.sm * 10 + static_cast<std::uint32_t>(text[digit++] - '0');
  }
  // "f" is good for the whole family, which an equal number before the last digit tells.
  target.exact = digit < text.size() && text[digit] == 'a';
  return target;
}

class Chooser {
 public:
  explicit Chooser(Architecture architecture) : architecture_(architecture) {}

  void Add(const Image& image, const std::string& from) {
    switch (image.format) {
      case Image::Format::kVirtual: return PassOver(from, "is for the virtual device");
      case Image::Format::kOpenClC: return PassOver(from, "is OpenCL C");
      case Image::Format::kCudaC: return AddSource(image.bytes, from);
      case Image::Format::kPtx: return AddPtx(image.bytes, from + " (PTX");
      case Image::Format::kCubin: return AddElf(image.bytes, from + " (a cubin");
      case Image::Format::kFatbin: return AddFatbin(image.bytes, from + " (a fat binary's ");
    }
  }

  ImageChoice Finish() && {
    std::stable_sort(choice_.usable.begin(), choice_.usable.end(),
                     [](const UsableImage& a, const UsableImage& b) {
                       if (a.kind != b.kind) return a.kind == UsableImage::Kind::kPtx;
                       return a.sm != b.sm ? a.sm > b.sm : a.exact && !b.exact;
                     });
    return std::move(choice_);
  }

 private:
  void PassOver(const std::string& from, const std::string& why) {
    choice_.passed_over += (choice_.passed_over.empty() ? "" : "; ") + from + " " + why;
  }
  void Broken(const std::string& from, const Status& status) {
    PassOver(from, "is broken: " + status.message());
    if (choice_.broken.ok()) {
      choice_.broken = Status(status.code(), status.reason(), from + ": " + status.message());
    }
  }

  void AddSource(const std::string& source, const std::string& from) {
    const Result<std::string> text = CompileCudaSource(source, architecture_.sm);
    if (text.ok()) return AddPtx(*text, from + " (CUDA C++");
    if (text.status().code() == StatusCode::kUnimplemented) {
      return PassOver(from, "is CUDA C++, and " + text.status().message());
    }
    Broken(from, text.status());
  }

  void AddPtx(std::string text, const std::string& from) {
    while (!text.empty() && text.back() == '\0') text.pop_back();
    const std::optional<Target> target = TargetOf(text);
    if (!target) {
      return Broken(from + ")", ptx::BadPtx(text, 0, "it names no target: '.target sm_75'"));
    }
    const std::string named = from + " for sm_" + std::to_string(target->sm) + ")";
    if (target->sm > architecture_.sm || (target->exact && target->sm != architecture_.sm)) {
      return PassOver(named,
                      "is for another GPU than one of sm_" + std::to_string(architecture_.sm));
    }
    choice_.usable.push_back({.kind = UsableImage::Kind::kPtx,
                              .sm = target->sm,
                              .exact = target->exact,
                              .bytes = std::move(text),
                              .from = named});
  }

  void AddElf(std::string bytes, const std::string& from) {
    const Result<ptx::CubinInfo> cubin = ptx::ParseCubin(bytes);
    if (!cubin.ok()) return Broken(from + ")", cubin.status());
    const std::string named = from + " for sm_" + std::to_string(cubin->sm) + ")";
    // Machine code runs within its major version only.
    if (cubin->sm > architecture_.sm || cubin->sm / 10 != architecture_.sm / 10) {
      return PassOver(named, "is machine code for another GPU than one of sm_" +
                                 std::to_string(architecture_.sm));
    }
    choice_.usable.push_back({.kind = UsableImage::Kind::kElf,
                              .sm = cubin->sm,
                              .exact = false,
                              .bytes = std::move(bytes),
                              .from = named});
  }

  void AddFatbin(const std::string& bytes, const std::string& from) {
    Result<std::vector<ptx::FatbinImage>> images = ptx::ParseFatbin(bytes);
    if (!images.ok()) return Broken(from + "header)", images.status());
    for (ptx::FatbinImage& image : *images) {
      switch (image.kind) {
        case ptx::FatbinImage::Kind::kPtx: AddPtx(std::move(image.bytes), from + "PTX"); break;
        case ptx::FatbinImage::Kind::kElf: AddElf(std::move(image.bytes), from + "cubin"); break;
      }
    }
    if (images->empty()) PassOver(from + "header)", "has neither PTX nor machine code");
  }

  const Architecture architecture_;
  ImageChoice choice_;
};

}  // namespace

ImageChoice ChooseImages(const std::vector<Image>& images, Architecture architecture) {
  Chooser chooser(architecture);
  for (std::size_t i = 0; i < images.size(); ++i) {
    chooser.Add(images[i], "image " + std::to_string(i + 1));
  }
  return std::move(chooser).Finish();
}

}  // namespace gpusched::device
