// Reads virtual modules line by line, collecting every error before it answers.
#include "device/virtual/virtual_module.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <set>
#include <string>

#include "device/virtual/cost_model.h"
#include "gpusched/reasons.h"
#include "gpusched/units.h"

namespace gpusched::device {
namespace {

// Beyond any use, and small enough that a hostile text costs little.
constexpr std::size_t kLongestText = 1 << 20;
constexpr std::size_t kMostKernels = 4'096;
constexpr std::size_t kMostParameters = 256;
constexpr std::uint32_t kLargestValue = 4'096;
constexpr std::size_t kMostErrorsShown = 20;  // enough to fix a file by, short enough for a message

struct ValueType {
  std::string_view name;
  std::uint32_t size;
  bool scales;  // unsigned, so it may multiply the time
};
constexpr std::array<ValueType, 8> kValueTypes{{{"u8", 1, true},
                                                {"u16", 2, true},
                                                {"u32", 4, true},
                                                {"u64", 8, true},
                                                {"i32", 4, false},
                                                {"i64", 8, false},
                                                {"f32", 4, false},
                                                {"f64", 8, false}}};

std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<std::uint32_t> ParseNumber(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool IsName(std::string_view text) {
  if (text.empty() || text.size() > 128 || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

class Reader {
 public:
  Result<VirtualModule> Read(std::string_view text) {
    if (text.size() > kLongestText) {
      return Status(StatusCode::kInvalidArgument, reason::kBadModule,
                    "a virtual module has at most " + FormatBytes(kLongestText) + " of text");
    }
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      ReadLine(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (errors_ == 0 && module_.kernels.empty()) Complain("a module names at least one kernel");
    if (errors_ == 0) return std::move(module_);
    if (errors_ > kMostErrorsShown) {
      text_ += "; and " + std::to_string(errors_ - kMostErrorsShown) + " more";
    }
    return Status(StatusCode::kInvalidArgument, reason::kBadModule, text_);
  }

 private:
  // One line's kernel while its settings are read.
  struct Draft {
    KernelInfo info;
    VirtualKernel kernel;
    std::vector<bool> scales;  // per parameter: may it multiply the time?
    std::set<std::string_view> given;
  };

  void Complain(const std::string& what) {
    if (++errors_ > kMostErrorsShown) return;
    if (!text_.empty()) text_ += "; ";
    text_ += "line " + std::to_string(std::max<std::size_t>(line_, 1)) + ": " + what;
  }

  void ReadLine(std::string_view line) {
    const auto words = Split(line.substr(0, line.find('#')), " \t\r\f\v");
    if (words.empty()) return;
    if (words[0] != "kernel") {
      return Complain("expected 'kernel NAME time_per_block=...', found '" + Shown(words[0]) + "'");
    }
    if (words.size() < 2 || !IsName(words[1])) {
      return Complain(
          "a kernel's name is made of letters, digits and '_' and does not begin with a digit");
    }
    if (!names_.insert(words[1]).second) {
      return Complain("kernel '" + Shown(words[1]) + "' is named twice");
    }
    if (module_.kernels.size() == kMostKernels) {
      return Complain("a module has at most " + std::to_string(kMostKernels) + " kernels");
    }
    Draft draft;
    draft.info.name = words[1];
    draft.info.cuttable = true;
    for (std::size_t i = 2; i < words.size(); ++i) ReadSetting(words[i], draft);
    Finish(draft);
  }

  void ReadSetting(std::string_view setting, Draft& draft) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos) {
      return Complain("expected key=value, found '" + Shown(setting) + "'");
    }
    const std::string_view key = setting.substr(0, equals);
    const std::string_view value = setting.substr(equals + 1);
    if (!draft.given.insert(key).second) return Complain("'" + Shown(key) + "' is given twice");
    if (key == "time_per_block") {
      ReadTime(value, draft);
    } else if (key == "cuttable") {
      ReadYesNo(key, value, draft.info.cuttable);
    } else if (key == "parameters") {
      ReadParameters(value, draft);
    } else if (key == "scale") {
      draft.kernel.scale = ParseNumber(value);
      if (!draft.kernel.scale) Complain("scale is the index of a parameter, counted from 0");
    } else if (key == "fail") {
      ReadYesNo(key, value, draft.kernel.fails);
    } else {
      Complain("unknown key '" + Shown(key) +
               "'; a kernel has time_per_block, cuttable, parameters, scale, fail");
    }
  }

  void ReadTime(std::string_view value, Draft& draft) {
    const auto time = ParseDuration(value);
    if (time && *time <= kLongestWork) {
      draft.kernel.time_per_block = *time;
    } else {
      Complain("time_per_block is a duration of at most 1h such as 10us, not '" + Shown(value) +
               "'");
    }
  }

  void ReadYesNo(std::string_view key, std::string_view value, bool& fact) {
    if (value != "yes" && value != "no") Complain(std::string(key) + " is yes or no");
    fact = value == "yes";
  }

  void ReadParameters(std::string_view value, Draft& draft) {
    if (value.starts_with(',') || value.ends_with(',') ||
        value.find(",,") != std::string_view::npos) {
      return Complain("a comma in parameters stands between two of them");
    }
    for (const std::string_view kind : Split(value, ",")) {
      Parameter parameter;
      bool scales = false;
      if (kind == "buffer") {
        parameter.kind = Parameter::Kind::kBuffer;
      } else if (kind == "local") {
        parameter.kind = Parameter::Kind::kLocal;
      } else if (!ReadValueType(kind, parameter.size, scales)) {
        return Complain(
            "unknown parameter kind '" + Shown(kind) +
            "'; there are buffer, local, u8, u16, u32, u64, i32, i64, f32, f64 and bytesN");
      }
      draft.info.parameters.push_back(parameter);
      draft.scales.push_back(scales);
    }
    if (draft.info.parameters.size() > kMostParameters) {
      Complain("a kernel has at most " + std::to_string(kMostParameters) + " parameters");
    }
  }

  static bool ReadValueType(std::string_view kind, std::uint32_t& size, bool& scales) {
    for (const ValueType& type : kValueTypes) {
      if (type.name != kind) continue;
      size = type.size;
      scales = type.scales;
      return true;
    }
    if (!kind.starts_with("bytes")) return false;
    const auto number = ParseNumber(kind.substr(5));
    size = number.value_or(0);
    return size >= 1 && size <= kLargestValue;
  }

  // What can only be judged when the whole line is read.
  void Finish(Draft& draft) {
    if (!draft.given.contains("time_per_block")) {
      Complain("kernel '" + draft.info.name + "' lacks time_per_block=");
    }
    const auto& scale = draft.kernel.scale;
    if (scale && (*scale >= draft.scales.size() || !draft.scales[*scale])) {
      Complain("scale=" + std::to_string(*scale) +
               " is not the index of an unsigned parameter (u8, u16, u32, u64), counted from 0");
    }
    if (!draft.info.cuttable) draft.info.whole_reason = "the module says cuttable=no";
    module_.info.kernels.push_back(std::move(draft.info));
    module_.kernels.push_back(draft.kernel);
  }

  // Outside text in a message: short and printable.
  static std::string Shown(std::string_view text) {
    std::string shown(text.substr(0, 40));
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return shown;
  }

  VirtualModule module_;
  std::set<std::string_view> names_;
  std::size_t line_ = 0;
  std::size_t errors_ = 0;
  std::string text_;
};

std::uint64_t UnsignedValue(const std::string& bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(),
              std::min(bytes.size(), sizeof value));  // little-endian hosts only
  return value;
}

}  // namespace

Result<VirtualModule> ParseVirtualModule(std::string_view text) { return Reader().Read(text); }

Duration LaunchWork(const VirtualKernel& kernel, const std::vector<Argument>& arguments,
                    std::uint64_t blocks) {
  __extension__ using Wide = unsigned __int128;
  const Wide longest = static_cast<std::uint64_t>(kLongestWork.count());
  std::uint64_t scale = 1;
  if (kernel.scale && *kernel.scale < arguments.size()) {
    if (const auto* value = std::get_if<ValueArgument>(&arguments[*kernel.scale])) {
      scale = UnsignedValue(*value);
    }
  }
  // A time per block is below 2^42 ns, so neither product passes 2^128.
  const Wide per_block =
      std::min(longest, Wide{static_cast<std::uint64_t>(kernel.time_per_block.count())} * scale);
  return Duration(static_cast<std::int64_t>(std::min(longest, per_block * blocks)));
}

}  // namespace gpusched::device
