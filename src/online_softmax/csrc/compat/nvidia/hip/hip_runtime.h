// The HIP names that the kernels use, on CUDA. First on the include path of a CUDA build,
// so that `#include <hip/hip_runtime.h>` finds this file and the sources stay one text.
#pragma once

#include <cuda_runtime.h>

using hipError_t = cudaError_t;
using hipStream_t = cudaStream_t;
constexpr hipError_t hipSuccess = cudaSuccess;

inline hipError_t hipGetLastError() { return cudaGetLastError(); }
inline const char* hipGetErrorString(hipError_t code) { return cudaGetErrorString(code); }

#define hipLaunchKernelGGL(kernel, grid, block, lds, stream, ...) \
  (kernel)<<<(grid), (block), (lds), (stream)>>>(__VA_ARGS__)

template <typename T>
__device__ __forceinline__ T __shfl_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}

// The one name that is ours: gpu.h defines it for AMD.
__host__ __device__ __forceinline__ float native_exp2(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}
