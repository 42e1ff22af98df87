// The HIP names that the kernels use, on CUDA. First on the include path of a CUDA build, so
// that `#include <hip/hip_runtime.h>` finds this file and the sources stay one text.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// ------------------------------------------------------------------------- the runtime

using hipError_t = cudaError_t;
using hipStream_t = cudaStream_t;
using hipDeviceProp_t = cudaDeviceProp;
constexpr hipError_t hipSuccess = cudaSuccess;
constexpr auto hipFuncAttributeMaxDynamicSharedMemorySize =
    cudaFuncAttributeMaxDynamicSharedMemorySize;

inline hipError_t hipGetLastError() { return cudaGetLastError(); }
inline const char* hipGetErrorString(hipError_t code) { return cudaGetErrorString(code); }
inline hipError_t hipGetDevice(int* device) { return cudaGetDevice(device); }
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  return cudaGetDeviceProperties(properties, device);
}
inline hipError_t hipFuncSetAttribute(const void* kernel, cudaFuncAttribute what, int value) {
  return cudaFuncSetAttribute(kernel, what, value);
}

#define hipLaunchKernelGGL(kernel, grid, block, lds, stream, ...) \
  (kernel)<<<(grid), (block), (lds), (stream)>>>(__VA_ARGS__)

// ---------------------------------------------------------------------- waves and atomics

template <typename T>
__device__ __forceinline__ T __shfl_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}

// A macro, since CUDA has an __any of its own that recent chips lack.
#define __any(predicate) __any_sync(0xffffffffu, predicate)

// Only what the kernels ask for: relaxed, at agent (device) scope, on 64-bit words.
#define __HIP_MEMORY_SCOPE_AGENT 4

__device__ __forceinline__ uint64_t __hip_atomic_load(const uint64_t* from, int, int) {
  uint64_t value;
  asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

__device__ __forceinline__ bool __hip_atomic_compare_exchange_strong(uint64_t* at,
                                                                     uint64_t* expected,
                                                                     uint64_t desired, int, int,
                                                                     int) {
  auto* word = reinterpret_cast<unsigned long long*>(at);
  const uint64_t found = atomicCAS(word, *expected, desired);
  const bool swapped = found == *expected;
  *expected = found;
  return swapped;
}

__device__ __forceinline__ uint64_t __hip_atomic_fetch_add(uint64_t* at, uint64_t value, int, int) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(at), value);
}

// ---------------------------------------------------------------- what gpu.h has for AMD

#define ONLINE_SOFTMAX_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)

namespace online_softmax {

constexpr bool kSharedMemoryIsLarge = true;

__host__ __device__ __forceinline__ float native_exp2(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

__device__ __forceinline__ float native_from_half(uint16_t bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}

__device__ __forceinline__ uint32_t native_two_halves(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ __forceinline__ uint32_t native_two_bfloat16s(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ __forceinline__ uint32_t native_max_halves(uint32_t a, uint32_t b) {
  uint32_t larger;
  asm("max.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
}

__device__ __forceinline__ uint32_t native_max_bfloat16s(uint32_t a, uint32_t b) {
  uint32_t larger;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
}

// 16 bytes in one access of device memory. In assembly, since the compiler may take a plain
// vector access apart into four.
__device__ __forceinline__ void native_load(uint32_t (&to)[4], const void* global) {
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "l"(global)
               : "memory");
}
__device__ __forceinline__ void native_store(void* global, const uint32_t (&from)[4]) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(global), "r"(from[0]), "r"(from[1]),
               "r"(from[2]), "r"(from[3])
               : "memory");
}

// A word of which the compiler knows nothing any more.
__device__ __forceinline__ void native_opaque(uint32_t& word) { asm volatile("" : "+r"(word)); }

// Has the compiler hold an address rather than compute it again.
template <typename T>
__device__ __forceinline__ void native_hold(T*& address) {
  asm volatile("" : "+l"(address));
}

// Copies 16 bytes to shared memory in the background.
__device__ __forceinline__ void native_copy_to_shared(void* shared, const void* global) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}

__device__ __forceinline__ void native_wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// From Hopper on, if the kernel's code was made for it, a kernel may be launched to start early,
// beneath the one ahead of it in the stream once that lets it, and waits for it before touching
// what it writes (programmatic dependent launch).
inline bool native_starts_early(const void* kernel) {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.ptxVersion >= 90;
}

template <typename... Parameters, typename... Arguments>
void native_launch(bool early, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                   hipStream_t stream, Arguments... arguments) {
  cudaLaunchAttribute starts_early{};
  starts_early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  starts_early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &starts_early;
  config.numAttrs = early ? 1 : 0;
  (void)cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

__device__ __forceinline__ void native_let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ __forceinline__ void native_wait_for_stream() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace online_softmax
