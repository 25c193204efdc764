# Makes a C++ constant of a kernel file, so that a program carries its kernels in itself.
#
#   gpusched_embed_kernels(TARGET FILE CONSTANT)
#
# #include "kernels/NAME.h", NAME being FILE's without its ending, then gives TARGET the
# std::string_view kernels::CONSTANT: FILE's text with gpusched/kernel.h in the place of its
# #include "gpusched/kernel.h". Line numbers in a build log are FILE's.
function(gpusched_embed_kernels target file constant)
  if(NOT GPUSCHED_KERNEL_HEADER)  # in the source tree
    set(GPUSCHED_KERNEL_HEADER "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/include/gpusched/kernel.h")
  endif()
  get_filename_component(path "${file}" ABSOLUTE)
  get_filename_component(name "${file}" NAME_WE)
  get_filename_component(shown "${file}" NAME)
  foreach(source "${path}" "${GPUSCHED_KERNEL_HEADER}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  endforeach()
  file(READ "${path}" text)
  file(READ "${GPUSCHED_KERNEL_HEADER}" header)
  set(include "#include \"gpusched/kernel.h\"\n")
  string(FIND "${text}" "${include}" at)
  if(at EQUAL -1)
    set(text "#line 1 \"${shown}\"\n${text}")
  else()
    string(SUBSTRING "${text}" 0 ${at} before)
    string(REGEX MATCHALL "\n" lines "${before}")
    list(LENGTH lines line)
    math(EXPR line "${line} + 2")
    string(REPLACE "${include}" "${header}#line ${line} \"${shown}\"\n" text "${text}")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}_kernels")
  file(CONFIGURE OUTPUT "${folder}/kernels/${name}.h" CONTENT
"// Made by CMake from ${shown}.
#pragma once

#include <string_view>

namespace kernels {

inline constexpr std::string_view ${constant} = R\"gpusched(${text})gpusched\";

}  // namespace kernels
" @ONLY)
  target_include_directories(${target} PRIVATE "${folder}")
endfunction()
