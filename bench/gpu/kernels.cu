// Kernels to be cut on hardware: matrix product, reductions, transposes, atomics, CUB's scan and sort.
//
// Compiled to PTX by run.sh. Every result is of whole numbers, so the order of sums does not matter.
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>

extern "C" {

// Turns a number for so many rounds: work of a chosen length.
__global__ void spin(unsigned* out, unsigned rounds) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value = i;
  for (unsigned round = 0; round < rounds; ++round) value = value * 5 + 3;
  out[i] = value;
}

// C = A B for squares of `n`, tiles of 16.
__global__ void product(unsigned* c, const unsigned* a, const unsigned* b, unsigned n) {
  __shared__ unsigned left[16][16], right[16][16];
  const unsigned x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  unsigned sum = 0;
  for (unsigned tile = 0; tile < n; tile += 16) {
    left[threadIdx.y][threadIdx.x] = a[y * n + tile + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + x];
    __syncthreads();
    for (unsigned k = 0; k < 16; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = sum;
}

__global__ void transpose(unsigned* out, const unsigned* in, unsigned n) {
  __shared__ unsigned tile[16][17];
  unsigned x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

// One sum a block, and all of them together.
__global__ void reduce(unsigned* sums, unsigned* total, const unsigned* in) {
  __shared__ unsigned part[256];
  part[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  for (unsigned step = 128; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = part[0];
    atomicAdd(total, part[0]);
  }
}

__global__ void histogram(unsigned* bins, const unsigned* in) {
  atomicAdd(&bins[in[blockIdx.x * blockDim.x + threadIdx.x] % 64], 1u);
}

__global__ void scan(unsigned* out, const unsigned* in) {
  using Scan = cub::BlockScan<unsigned, 256>;
  __shared__ typename Scan::TempStorage storage;
  const unsigned i = blockIdx.x * 256 + threadIdx.x;
  unsigned value;
  Scan(storage).ExclusiveSum(in[i], value);
  out[i] = value + gridDim.x;
}

__global__ void sort(unsigned* out, const unsigned* in) {
  using Sort = cub::BlockRadixSort<unsigned, 256, 4>;
  __shared__ typename Sort::TempStorage storage;
  unsigned keys[4];
  const unsigned first = (blockIdx.x * 256 + threadIdx.x) * 4;
  for (int i = 0; i < 4; ++i) keys[i] = in[first + i];
  Sort(storage).Sort(keys);
  for (int i = 0; i < 4; ++i) out[first + i] = keys[i];
}

}  // extern "C"
