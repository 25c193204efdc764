// The tables of opcodes, types, state spaces and special registers.
#include "support/fake_cudart/ptx_names.h"

#include <map>

#include "gpusched/reasons.h"

namespace gpusched::test::ptx {

Status Unknown(const device::ptx::Module& module, device::ptx::TokenIndex at,
               std::string_view what) {
  return {StatusCode::kUnimplemented, reason::kBadModule,
          "the PTX interpreter does not know " + std::string(what) + " (" + module.Place(at) + ")"};
}

std::optional<Code> CodeNamed(std::string_view word) {
  static const std::map<std::string_view, Code> kCodes{
#define GPUSCHED_PTX_NAMED(name) {#name, Code::k_##name},
      GPUSCHED_PTX_OPCODES(GPUSCHED_PTX_NAMED)
#undef GPUSCHED_PTX_NAMED
  };
  if (word == "prefetchu") return Code::k_prefetch;
  const auto found = kCodes.find(word);
  if (found == kCodes.end()) return std::nullopt;
  return found->second;
}

std::optional<StateSpace> SpaceNamed(std::string_view word) {
  if (word == "global") return StateSpace::kGlobal;
  if (word == "shared" || word == "shared::cta") return StateSpace::kShared;
  if (word == "local") return StateSpace::kLocal;
  if (word == "const") return StateSpace::kConst;
  if (word == "param" || word == "param::entry" || word == "param::func") return StateSpace::kParam;
  return std::nullopt;
}

std::optional<Special> SpecialNamed(std::string_view word) {
  static const std::map<std::string_view, Special> kSpecials{
      {"%tid.x", Special::kTidX},
      {"%tid.y", Special::kTidY},
      {"%tid.z", Special::kTidZ},
      {"%ntid.x", Special::kNtidX},
      {"%ntid.y", Special::kNtidY},
      {"%ntid.z", Special::kNtidZ},
      {"%ctaid.x", Special::kCtaidX},
      {"%ctaid.y", Special::kCtaidY},
      {"%ctaid.z", Special::kCtaidZ},
      {"%nctaid.x", Special::kNctaidX},
      {"%nctaid.y", Special::kNctaidY},
      {"%nctaid.z", Special::kNctaidZ},
      {"%laneid", Special::kLaneid},
      {"%warpid", Special::kWarpid},
      {"%nwarpid", Special::kNwarpid},
      {"WARP_SZ", Special::kWarpsize},
      {"%lanemask_eq", Special::kLanemaskEq},
      {"%lanemask_lt", Special::kLanemaskLt},
      {"%lanemask_le", Special::kLanemaskLe},
      {"%lanemask_gt", Special::kLanemaskGt},
      {"%lanemask_ge", Special::kLanemaskGe},
      {"%smid", Special::kSmid},
      {"%nsmid", Special::kNsmid},
      {"%clock", Special::kClock},
      {"%clock64", Special::kClock},
      {"%globaltimer", Special::kClock},
      {"%gridid", Special::kGridid},
      {"%dynamic_smem_size", Special::kDynamicShared}};
  const auto found = kSpecials.find(word);
  if (found == kSpecials.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint64_t> Literal(std::string_view word) {
  if (word.starts_with("0f") || word.starts_with("0F") || word.starts_with("0d") ||
      word.starts_with("0D")) {
    return device::ptx::ParseInteger("0x" + std::string(word.substr(2)));
  }
  return device::ptx::ParseInteger(word);
}

std::string_view Name(Code code) {
  switch (code) {
#define GPUSCHED_PTX_NAME(name) \
  case Code::k_##name: return #name;
    GPUSCHED_PTX_OPCODES(GPUSCHED_PTX_NAME)
#undef GPUSCHED_PTX_NAME
  }
  return "?";
}

std::optional<Type> TypeNamed(std::string_view word) {
  static const std::map<std::string_view, Type> kTypes{
      {"u8", Type::kU8},         {"u16", Type::kU16},   {"u32", Type::kU32}, {"u64", Type::kU64},
      {"s8", Type::kS8},         {"s16", Type::kS16},   {"s32", Type::kS32}, {"s64", Type::kS64},
      {"b8", Type::kU8},         {"b16", Type::kU16},   {"b32", Type::kU32}, {"b64", Type::kU64},
      {"f16", Type::kF16},       {"f16x2", Type::kF16}, {"f32", Type::kF32}, {"f64", Type::kF64},
      {"pred", Type::kPredicate}};
  const auto found = kTypes.find(word);
  if (found == kTypes.end()) return std::nullopt;
  return found->second;
}

}  // namespace gpusched::test::ptx
