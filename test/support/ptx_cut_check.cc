// One table of kernels with their launches; buffers are filled from the seed.
#include "support/ptx_cut_check.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <variant>

#include "device/cuda/ptx/rewrite.h"
#include "support/fake_cudart/ptx_interpreter.h"

namespace gpusched::test {
namespace {

using device::Dim3;
namespace text = device::ptx;

struct Buffer {
  std::size_t bytes;
  bool small_numbers = false;  // 32-bit whole numbers below 100
};
struct Number {
  std::uint64_t bits;
};
using Argument = std::variant<Buffer, Number>;

struct Case {
  const char* file;
  const char* kernel;
  Dim3 grid, block;
  std::vector<Argument> arguments;
  std::uint64_t shared = 0;
};

constexpr std::size_t kKilo = 1024;
// No launch here needs a tenth; a wrongly rewritten one may never end.
constexpr std::uint64_t kMostInstructions = 5'000'000;

std::uint64_t FloatBits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// What is printed, allocated or waits for a texture is left out; so is floating point that is added
// by atomics, whose sum depends on the order.
std::vector<Case> Cases() {
  const Buffer numbers{16 * kKilo, true};
  const Buffer out{64 * kKilo};
  return {
      {"grids",
       "_Z6LinearIfEvPT_PKS0_S0_i",
       {13},
       {64},
       {out, numbers, Number{FloatBits(2.5f)}, Number{800}}},
      {"grids", "_Z6LinearIiEvPT_PKS0_S0_i", {13}, {64}, {out, numbers, Number{3}, Number{800}}},
      {"grids", "_Z6StrideIyEvPT_PKS0_i", {7}, {32}, {out, out, Number{1000}}},
      {"grids", "_Z6StrideIsEvPT_PKS0_i", {5}, {32}, {out, numbers, Number{700}}},
      {"grids",
       "_Z8Stencil2IfEvPT_PKS0_ii",
       {5, 4},
       {8, 8},
       {out, numbers, Number{37}, Number{29}}},
      {"grids",
       "_Z8Stencil2IiEvPT_PKS0_ii",
       {5, 4},
       {8, 8},
       {out, numbers, Number{37}, Number{29}}},
      {"grids",
       "_Z7Volume3IfEvPT_iii",
       {3, 4, 5},
       {4, 4, 2},
       {out, Number{11}, Number{15}, Number{9}}},
      {"grids",
       "_Z7Volume3IdEvPT_iii",
       {3, 4, 5},
       {4, 4, 2},
       {out, Number{11}, Number{15}, Number{9}}},
      {"grids",
       "_Z7Volume3IiEvPT_iii",
       {3, 4, 5},
       {4, 4, 2},
       {out, Number{11}, Number{15}, Number{9}}},
      {"grids", "_Z6WhoAmIIiEvPT_", {4, 3, 5}, {16}, {out}},
      {"grids", "_Z6WhoAmIIfEvPT_", {4, 3, 5}, {16}, {out}},
      {"grids", "_Z6WhoAmIIsEvPT_", {4, 3, 5}, {16}, {out}},
      {"grids", "_Z8SmallIdsPt", {50}, {1}, {out}},
      {"grids", "_Z7BoundedPf", {9}, {128}, {out}},
      {"shared", "_Z8BlockSumIfEvPT_PKS0_i", {11}, {256}, {out, numbers, Number{2700}}},
      {"shared", "_Z8BlockSumIiEvPT_PKS0_i", {11}, {256}, {out, numbers, Number{2700}}},
      {"shared",
       "_Z9TransposeIfEvPT_PKS0_ii",
       {3, 4},
       {16, 16},
       {out, numbers, Number{41}, Number{60}}},
      {"shared",
       "_Z9TransposeIiEvPT_PKS0_ii",
       {3, 4},
       {16, 16},
       {out, numbers, Number{41}, Number{60}}},
      {"shared",
       "_Z8MultiplyIfLi8EEvPT_PKS0_S3_i",
       {3, 3},
       {8, 8},
       {out, numbers, numbers, Number{24}}},
      {"shared",
       "_Z8MultiplyIiLi16EEvPT_PKS0_S3_i",
       {2, 2},
       {16, 16},
       {out, numbers, numbers, Number{32}}},
      {"shared", "_Z9HistogramPjPKhi", {6}, {256}, {Buffer{kKilo, true}, numbers, Number{5000}}},
      {"shared", "_Z7DynamicPfi", {8}, {64}, {out, Number{64}}, 256},
      {"shared", "_Z7WarpSumPiPKi", {10}, {64}, {Buffer{kKilo, true}, numbers}},
      {"shared", "_Z8MaxFloatPfPKfi", {6}, {64}, {Buffer{64, true}, numbers, Number{380}}},
      {"functions", "_Z10CallsWherePi", {3, 4, 2}, {16}, {out}},
      {"functions", "_Z11CallsDeeperPii", {3, 4, 2}, {1}, {out, Number{7}}},
      {"functions", "_Z14CallsFactorialPi", {4}, {32}, {out}},
      {"functions", "_Z14CallsByPointerPii", {6}, {32}, {out, Number{1}}},
      {"functions", "_Z12CallsVirtualPfi", {6}, {1}, {out, Number{1}}},
      {"functions", "_Z9LastBlockPfPKf", {12}, {4}, {out, numbers}},
      {"functions", "_Z8ConstantPf", {12}, {1}, {out}},
  };
}

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(StatusCode::kNotFound, "NO_FILE", "cannot read '" + path + "'");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

struct Data {
  std::vector<std::vector<std::byte>> buffers;
  bool operator==(const Data&) const = default;
};

Data Fill(const Case& test, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Data data;
  for (const Argument& argument : test.arguments) {
    const auto* buffer = std::get_if<Buffer>(&argument);
    if (buffer == nullptr) continue;
    std::vector<std::byte> bytes(buffer->bytes);
    for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4) {
      const auto word =
          static_cast<std::uint32_t>(buffer->small_numbers ? random() % 100 : random());
      std::memcpy(bytes.data() + at, &word, sizeof(word));
    }
    data.buffers.push_back(std::move(bytes));
  }
  return data;
}

// Where the interpreter finds what the arguments point to: each buffer at an address of its own.
Memory MemoryOf(Data& data) {
  return [&data](std::uint64_t address, std::size_t bytes) -> std::byte* {
    for (std::vector<std::byte>& buffer : data.buffers) {
      const std::uint64_t at = address - reinterpret_cast<std::uint64_t>(buffer.data());
      if (at <= buffer.size() && bytes <= buffer.size() - at) return buffer.data() + at;
    }
    return nullptr;
  };
}

std::vector<std::byte> Parameters(const Case& test, const text::RewrittenKernel& kernel,
                                  const Data& data) {
  std::vector<std::byte> bytes(kernel.box_offset + sizeof(text::BoxParameter));
  std::size_t buffer = 0;
  for (std::size_t i = 0; i < test.arguments.size() && i < kernel.offsets.size(); ++i) {
    const auto* number = std::get_if<Number>(&test.arguments[i]);
    const std::uint64_t value =
        number != nullptr ? number->bits
                          : reinterpret_cast<std::uint64_t>(data.buffers[buffer++].data());
    std::memcpy(bytes.data() + kernel.offsets[i], &value,
                std::min<std::size_t>(kernel.sizes[i], sizeof(value)));
  }
  return bytes;
}

// Lengths of the parts, together the whole.
std::vector<std::uint64_t> RandomParts(std::uint64_t blocks, std::mt19937_64& random) {
  std::vector<std::uint64_t> parts;
  while (blocks > 0) {
    const std::uint64_t most = random() % 3 == 0 ? blocks : std::max<std::uint64_t>(blocks / 4, 1);
    parts.push_back(1 + random() % most);
    blocks -= parts.back();
  }
  return parts;
}

class CaseRun {
 public:
  CaseRun(const Case& test, const std::string& original, const std::string& changed,
          const text::RewrittenKernel& kernel)
      : test_(test), original_(original), changed_(changed), kernel_(kernel) {}

  std::string Compare(int cuts, std::uint64_t seed) {
    Data whole = Fill(test_, seed);
    Result<PtxProgram> program = PtxProgram::Load(original_);
    if (!program.ok()) return program.status().ToString();
    std::vector<std::byte> parameters = Parameters(test_, kernel_, whole);
    parameters.resize(kernel_.parameter_bytes);
    if (Status status = Run(*program, test_.grid, parameters, whole); !status.ok()) {
      return "whole: " + status.ToString();
    }
    if (whole == Fill(test_, seed)) return "the kernel does nothing";
    std::mt19937_64 random(seed);
    for (int cut = 0; cut < cuts; ++cut) {
      const std::string difference = CompareOne(whole, seed, random);
      if (!difference.empty()) return "cut " + std::to_string(cut) + ": " + difference;
    }
    return "";
  }

 private:
  std::string CompareOne(const Data& whole, std::uint64_t seed, std::mt19937_64& random) {
    Data parts = Fill(test_, seed);
    Result<PtxProgram> program = PtxProgram::Load(changed_);
    if (!program.ok()) return program.status().ToString();
    std::vector<std::byte> parameters = Parameters(test_, kernel_, parts);
    std::uint64_t first = 0;
    for (std::uint64_t count : RandomParts(device::Volume(test_.grid), random)) {
      const text::BoxList list = text::CutIntoBoxes(test_.grid, first, count);
      for (const text::Box& box : list.boxes()) {
        const text::BoxParameter value = text::ToParameter(box, test_.grid);
        std::memcpy(parameters.data() + kernel_.box_offset, &value, sizeof(value));
        if (Status status = Run(*program, box.extent, parameters, parts); !status.ok()) {
          return status.ToString();
        }
      }
      first += count;
    }
    for (std::size_t i = 0; i < parts.buffers.size(); ++i) {
      const auto &a = whole.buffers[i], &b = parts.buffers[i];
      const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
      if (a != b) return "buffer " + std::to_string(i) + " differs at byte " + std::to_string(at);
    }
    return "";
  }
  Status Run(PtxProgram& program, Dim3 grid, const std::vector<std::byte>& parameters, Data& data) {
    return program.Launch({.kernel = test_.kernel,
                           .grid = grid,
                           .block = test_.block,
                           .parameters = parameters,
                           .dynamic_shared_bytes = test_.shared,
                           .go_on = {},
                           .most_instructions = kMostInstructions},
                          MemoryOf(data));
  }

  const Case& test_;
  const std::string& original_;
  const std::string& changed_;
  const text::RewrittenKernel& kernel_;
};

}  // namespace

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

Result<std::vector<CutCheckResult>> CheckCuts(const std::string& folder, int cuts,
                                              std::uint64_t seed, const Spoil& spoil) {
  struct File {
    std::string original;
    text::Rewritten rewritten;
  };
  std::map<std::string, File> files;
  std::vector<CutCheckResult> results;
  for (const Case& test : Cases()) {
    auto known = files.find(test.file);
    if (known == files.end()) {
      Result<std::string> original = ReadFile(folder + "/" + test.file + ".ptx");
      if (!original.ok()) return original.status();
      Result<text::Rewritten> rewritten = text::Rewrite(*original);
      if (!rewritten.ok()) return rewritten.status();
      if (spoil) rewritten->text = spoil(std::move(rewritten->text));
      known = files.emplace(test.file, File{*std::move(original), *std::move(rewritten)}).first;
    }
    const File& file = known->second;
    const auto kernel =
        std::find_if(file.rewritten.kernels.begin(), file.rewritten.kernels.end(),
                     [&](const text::RewrittenKernel& each) { return each.name == test.kernel; });
    CutCheckResult result{.kernel = test.kernel, .cuts = cuts, .difference = {}};
    if (kernel == file.rewritten.kernels.end()) {
      result.difference = "there is no such kernel";
    } else if (!kernel->boxed) {
      result.difference = "it was not rewritten: " + kernel->verdict.reason;
    } else {
      result.difference =
          CaseRun(test, file.original, file.rewritten.text, *kernel).Compare(cuts, seed);
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace gpusched::test
