// Ends the program at the first CUDA error, with the place.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#define GPU_CHECK(call)                                                               \
  do {                                                                                \
    const cudaError_t code = (call);                                                  \
    if (code != cudaSuccess) {                                                        \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,              \
                   cudaGetErrorName(code));                                           \
      std::exit(1);                                                                   \
    }                                                                                 \
  } while (false)
