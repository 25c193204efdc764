// Words with which one kernel source compiles as OpenCL C 1.2 and as CUDA C++.
//
//   #include "gpusched/kernel.h"
//
//   GS_KERNEL void saxpy(float a, GS_GLOBAL const float* x, GS_GLOBAL float* y, uint n) {
//     const size_t i = GS_GLOBAL_ID(0);
//     if (i < n) y[i] = a * x[i] + y[i];
//   }
//
// The CMake function gpusched_embed_kernels (it comes with find_package(gpusched)) makes a constant
// of such a file, this text included, to be given to LoadModule as `source` and as `cuda_source`.
// samples/PORTING.md goes through what changes. Both languages have sqrt, exp, fabs, fmin, floor
// and the like of float under the same names; write constants as 1.0f.
//
// Bounds: dimensions are 0, 1 or 2, as constants. Vectors are read and written by component (.x .y
// .z .w): CUDA C++ has no arithmetic on them. Local memory is declared in the kernel, with a
// constant size.
#ifndef GPUSCHED_KERNEL_H_
#define GPUSCHED_KERNEL_H_

#if defined(__OPENCL_VERSION__)

#define GS_KERNEL __kernel
// The kernel is only ever launched with blocks of x * y * z threads.
#define GS_BLOCK(x, y, z) __attribute__((reqd_work_group_size(x, y, z)))
// In front of a function that kernels call.
#define GS_FUNCTION inline __attribute__((always_inline))

// In front of what a pointer points to.
#define GS_GLOBAL __global
#define GS_LOCAL_POINTER __local
// Behind the star of a parameter: nothing else that the kernel touches lies there. Without it a
// compiler that cannot be sure may leave a loop scalar, at a quarter of the speed.
#define GS_RESTRICT restrict
// In front of an array: in a kernel's body, shared by the threads of a block; at file scope, with
// its values, for constants.
#define GS_LOCAL __local
#define GS_CONSTANT __constant

#define GS_GLOBAL_ID(d) get_global_id(d)
#define GS_GLOBAL_SIZE(d) get_global_size(d)
#define GS_LOCAL_ID(d) get_local_id(d)
#define GS_LOCAL_SIZE(d) get_local_size(d)
#define GS_GROUP_ID(d) get_group_id(d)
#define GS_GROUPS(d) get_num_groups(d)

// All threads of the block meet here and then see each other's writes. Every thread or none calls.
#define GS_BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

// On int and uint in global or local memory; each gives the value before.
#define GS_ATOMIC_ADD(pointer, value) atomic_add(pointer, value)
#define GS_ATOMIC_SUB(pointer, value) atomic_sub(pointer, value)
#define GS_ATOMIC_MIN(pointer, value) atomic_min(pointer, value)
#define GS_ATOMIC_MAX(pointer, value) atomic_max(pointer, value)
#define GS_ATOMIC_EXCHANGE(pointer, value) atomic_xchg(pointer, value)
#define GS_ATOMIC_COMPARE_EXCHANGE(pointer, expected, value) \
  atomic_cmpxchg(pointer, expected, value)

#define GS_FLOAT2(x, y) ((float2)(x, y))
#define GS_FLOAT4(x, y, z, w) ((float4)(x, y, z, w))

#elif defined(__CUDACC__) || defined(__CUDACC_RTC__)

#define GS_KERNEL extern "C" __global__
#define GS_BLOCK(x, y, z) __launch_bounds__((x) * (y) * (z))
#define GS_FUNCTION static __device__ __forceinline__

#define GS_GLOBAL
#define GS_LOCAL_POINTER
#define GS_RESTRICT __restrict__
#define GS_LOCAL __shared__
#define GS_CONSTANT __constant__ const

// OpenCL's names; a repeated alias of one type is no error where the host's headers have them too.
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define GS_OF(d, v) ((d) == 0 ? v.x : (d) == 1 ? v.y : v.z)
// 64 bits wide as in OpenCL: a large grid passes 32.
#define GS_GLOBAL_ID(d) ((size_t)GS_OF(d, blockIdx) * GS_OF(d, blockDim) + GS_OF(d, threadIdx))
#define GS_GLOBAL_SIZE(d) ((size_t)GS_OF(d, gridDim) * GS_OF(d, blockDim))
#define GS_LOCAL_ID(d) ((size_t)GS_OF(d, threadIdx))
#define GS_LOCAL_SIZE(d) ((size_t)GS_OF(d, blockDim))
#define GS_GROUP_ID(d) ((size_t)GS_OF(d, blockIdx))
#define GS_GROUPS(d) ((size_t)GS_OF(d, gridDim))

#define GS_BARRIER() __syncthreads()

#define GS_ATOMIC_ADD(pointer, value) atomicAdd(pointer, value)
#define GS_ATOMIC_SUB(pointer, value) atomicSub(pointer, value)
#define GS_ATOMIC_MIN(pointer, value) atomicMin(pointer, value)
#define GS_ATOMIC_MAX(pointer, value) atomicMax(pointer, value)
#define GS_ATOMIC_EXCHANGE(pointer, value) atomicExch(pointer, value)
#define GS_ATOMIC_COMPARE_EXCHANGE(pointer, expected, value) atomicCAS(pointer, expected, value)

#define GS_FLOAT2(x, y) make_float2(x, y)
#define GS_FLOAT4(x, y, z, w) make_float4(x, y, z, w)

#else
#error "gpusched/kernel.h is for kernels: compile this as OpenCL C or as CUDA C++ (nvcc, NVRTC)"
#endif

#endif  // GPUSCHED_KERNEL_H_
