// What depends on the architecture, in one place: the wave and its shuffles, the fast
// exponential, 16-byte accesses. Everything else is written in these terms.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>

#if defined(__HIP_PLATFORM_AMD__)
__host__ __device__ __forceinline__ float native_exp2(float x) {
#if defined(__AMDGCN__) && __has_builtin(__builtin_amdgcn_exp2f)
  return __builtin_amdgcn_exp2f(x);
#else
  return exp2f(x);
#endif
}
#endif

namespace online_softmax {

// 2^x; in float by the hardware's one instruction (relative error 2^-22, 0 below 2^-126).
__host__ __device__ __forceinline__ float exp2_device(float x) { return native_exp2(x); }
__host__ __device__ __forceinline__ double exp2_device(double x) { return exp2(x); }

}  // namespace online_softmax

#define ONLINE_SOFTMAX_FUNCTION __host__ __device__ __forceinline__
#define ONLINE_SOFTMAX_EXP2 exp2_device
#include "pair.h"

namespace online_softmax {

// Lanes in a wave: 64 on AMD's gfx9 (CDNA), 32 on gfx10 to gfx12 (RDNA) and on NVIDIA.
// True in device code only; the host asks the device.
#if defined(__GFX9__)
constexpr int kWave = 64;
#else
constexpr int kWave = 32;
#endif
constexpr int kSmallestWave = 32;

// 16 bytes, the widest access of a lane; its address is a multiple of 16.
template <typename T>
struct alignas(16) Vector {
  static constexpr int kSize = 16 / sizeof(T);
  T at[kSize];
};

__device__ __forceinline__ int thread_index() { return static_cast<int>(threadIdx.x); }

template <typename Real>
__device__ __forceinline__ Real shuffle_xor(Real v, int mask) {
  return __shfl_xor(v, mask);
}

template <typename Real>
__device__ __forceinline__ Pair<Real> shuffle_xor(Pair<Real> p, int mask) {
  return {__shfl_xor(p.m, mask), __shfl_xor(p.d, mask)};
}

// Every lane gets the reduction over its wave.
template <typename V, typename Op>
__device__ __forceinline__ V wave_reduce(V v, Op op) {
#pragma unroll
  for (int mask = kWave / 2; mask > 0; mask /= 2) v = op(v, shuffle_xor(v, mask));
  return v;
}

// Every lane gets the reduction over its block. `scratch`, one V a wave in shared memory, is
// free again on return: without the second barrier a fast wave's next value could replace
// one that a slow wave has yet to read.
template <typename V, typename Op>
__device__ __forceinline__ V block_reduce(V v, V identity, V* scratch, Op op) {
  const int lane = thread_index() % kWave;
  const int wave = thread_index() / kWave;
  const int waves = static_cast<int>(blockDim.x) / kWave;
  v = wave_reduce(v, op);
  if (lane == 0) scratch[wave] = v;
  __syncthreads();
  v = wave_reduce(lane < waves ? scratch[lane] : identity, op);
  __syncthreads();
  return v;
}

}  // namespace online_softmax
