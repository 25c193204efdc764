// Reads signatures through clGetKernelArgInfo and clGetKernelWorkGroupInfo.
#include "device/opencl/kernel_signature.h"

#include <algorithm>
#include <array>

#include "device/opencl/error.h"
#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

struct Scalar {
  std::string_view name;
  std::uint32_t size;
};
// OpenCL 1.2 specification, sections 6.1.1 and 6.1.2; "unsigned x" is given as "ux" by the
// compiler, and both are taken. size_t, bool and their like cannot be kernel parameters.
constexpr std::array<Scalar, 15> kScalars{{{"char", 1},
                                           {"uchar", 1},
                                           {"unsigned char", 1},
                                           {"short", 2},
                                           {"ushort", 2},
                                           {"unsigned short", 2},
                                           {"half", 2},
                                           {"int", 4},
                                           {"uint", 4},
                                           {"unsigned int", 4},
                                           {"float", 4},
                                           {"long", 8},
                                           {"ulong", 8},
                                           {"unsigned long", 8},
                                           {"double", 8}}};
struct Width {
  std::string_view name;
  std::uint32_t elements;
};
constexpr std::array<Width, 6> kWidths{{{"", 1},
                                        {"2", 2},
                                        {"3", 4},
                                        {"4", 4},
                                        {"8", 8},
                                        {"16", 16}}};  // a vector of 3 takes the room of 4

std::string ArgumentText(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what) {
  std::size_t size = 0;
  if (clGetKernelArgInfo(kernel, index, what, 0, nullptr, &size) != CL_SUCCESS || size == 0)
    return "";
  std::string text(size, '\0');
  clGetKernelArgInfo(kernel, index, what, size, text.data(), nullptr);
  text.resize(size - 1);  // without its terminator
  return text;
}

template <typename T>
T WorkGroupFact(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what) {
  T fact{};
  clGetKernelWorkGroupInfo(kernel, device, what, sizeof fact, &fact, nullptr);
  return fact;
}

// Types of OpenCL C that name something a session has no handle for.
constexpr std::array<std::string_view, 15> kOpaqueTypes{
    "image1d_t",       "image1d_array_t",       "image1d_buffer_t", "image2d_t", "image2d_array_t",
    "image2d_depth_t", "image2d_array_depth_t", "image2d_msaa_t",   "image3d_t", "sampler_t",
    "event_t",         "clk_event_t",           "queue_t",          "ndrange_t", "reserve_id_t"};

bool IsOpaque(cl_kernel kernel, cl_uint index, std::string_view type) {
  cl_kernel_arg_access_qualifier access = CL_KERNEL_ARG_ACCESS_NONE;
  clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof access, &access,
                     nullptr);
  return access != CL_KERNEL_ARG_ACCESS_NONE ||  // only images and pipes have one
         std::find(kOpaqueTypes.begin(), kOpaqueTypes.end(), type) != kOpaqueTypes.end();
}

Result<Parameter> ReadParameter(cl_kernel kernel, cl_uint index, std::string& type) {
  cl_kernel_arg_address_qualifier space = 0;
  const cl_int error = clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
                                          sizeof space, &space, nullptr);
  if (error != CL_SUCCESS) return ClFailure("reading the kernel's signature", error);
  type = ArgumentText(kernel, index, CL_KERNEL_ARG_TYPE_NAME);
  Parameter parameter;
  parameter.name = ArgumentText(kernel, index, CL_KERNEL_ARG_NAME);
  if (IsOpaque(kernel, index, type)) {
    return Status(StatusCode::kUnimplemented, reason::kBadModule,
                  "its parameter '" + parameter.name + "' is of type " + type +
                      ", which a session cannot have; pass a buffer");
  }
  if (space == CL_KERNEL_ARG_ADDRESS_LOCAL) {
    parameter.kind = Parameter::Kind::kLocal;
  } else if (space != CL_KERNEL_ARG_ADDRESS_PRIVATE) {
    parameter.kind = Parameter::Kind::kBuffer;
  } else {
    parameter.size = BuiltinSize(type).value_or(0);
  }
  return parameter;
}

}  // namespace

std::optional<std::uint32_t> BuiltinSize(std::string_view type_name) {
  for (const Scalar& scalar : kScalars) {
    if (!type_name.starts_with(scalar.name)) continue;
    const std::string_view rest = type_name.substr(scalar.name.size());
    for (const Width& width : kWidths) {
      if (rest == width.name) return scalar.size * width.elements;
    }
  }
  return std::nullopt;
}

Result<KernelSignature> ReadSignature(cl_kernel kernel, cl_device_id device) {
  KernelSignature signature;
  cl_uint parameters = 0;
  const cl_int error =
      clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof parameters, &parameters, nullptr);
  if (error != CL_SUCCESS) return ClFailure("reading the kernel's signature", error);
  for (cl_uint index = 0; index < parameters; ++index) {
    std::string type;
    Result<Parameter> parameter = ReadParameter(kernel, index, type);
    if (!parameter) return parameter.status();
    if (parameter->kind == Parameter::Kind::kValue && parameter->size == 0) {
      signature.unknown.push_back({.parameter = index, .name = type});
    }
    signature.info.parameters.push_back(*std::move(parameter));
  }
  KernelInfo& info = signature.info;
  const auto block =
      WorkGroupFact<std::array<std::size_t, 3>>(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE);
  info.required_block = {static_cast<std::uint32_t>(block[0]), static_cast<std::uint32_t>(block[1]),
                         static_cast<std::uint32_t>(block[2])};
  info.max_block_threads = WorkGroupFact<std::size_t>(kernel, device, CL_KERNEL_WORK_GROUP_SIZE);
  info.static_local_bytes = WorkGroupFact<cl_ulong>(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE);
  return signature;
}

}  // namespace gpusched::device
