// The HIP names that the kernels use, on a CPU: for tests, of the kernels' own text, in waves of
// 64 (with -D__GFX9__) or 32. Nothing here is fast.
//
// A lane is a fiber that runs until it has to meet other lanes, in a shuffle, a vote or a barrier,
// or comes to an atomic, where other blocks get their turn. tests/host decides who runs when, and
// sees every access to memory.
#pragma once

#include <math.h>  // with the overloads for float in the global namespace

#include <cstdint>
#include <cstring>
#include <functional>

// --------------------------------------------------------------------------- the language

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)

// One copy a thread is one copy a block once blocks are swapped in and out of it; and unlike
// `static` it can follow `extern`.
#define __shared__ thread_local

#if defined(__GFX9__)
constexpr int warpSize = 64;
#else
constexpr int warpSize = 32;
#endif

struct uint4 {
  uint32_t x, y, z, w;
};
struct dim3 {
  unsigned x, y = 1, z = 1;
  explicit dim3(unsigned count = 1) : x(count) {}
};
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

// ------------------------------------------------------------------ what tests/host has

namespace host {

// Runs every lane of every block of a launch to its end.
void run(dim3 grid, dim3 block, size_t dynamic_shared, const std::function<void()>& kernel);

// Meeting points. In `shuffle` a lane gets what lane ^ mask of its wave brought.
uint64_t shuffle(uint64_t bits, int mask);
bool any(bool mine);
void barrier();

// Aligned accesses of 16 bytes; a copy is made no sooner than copy_now.
void load(void* to, const void* from);
void store(void* to, const void* from);
void copy_later(void* shared, const void* global);
void copy_now();

}  // namespace host

// ------------------------------------------------------------------------- the runtime

using hipError_t = int;
using hipStream_t = void*;
struct hipDeviceProp_t {
  int multiProcessorCount;
};
constexpr hipError_t hipSuccess = 0;
constexpr int hipFuncAttributeMaxDynamicSharedMemorySize = 0;

inline hipError_t hipGetLastError() { return hipSuccess; }
inline const char* hipGetErrorString(hipError_t) { return "no error"; }
inline hipError_t hipGetDevice(int* device) { return *device = 0; }
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int) {
  properties->multiProcessorCount = 4;
  return hipSuccess;
}
inline hipError_t hipFuncSetAttribute(const void*, int, int) { return hipSuccess; }

template <typename... Parameters, typename... Arguments>
void hipLaunchKernelGGL(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t dynamic_shared,
                        hipStream_t, Arguments... arguments) {
  host::run(grid, block, dynamic_shared, [=] { kernel(arguments...); });
}

// ---------------------------------------------------------------------- waves and atomics

template <typename T>
T __shfl_xor(T value, int mask) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = host::shuffle(bits, mask);
  memcpy(&value, &bits, sizeof value);
  return value;
}

inline bool __any(bool predicate) { return host::any(predicate); }
inline void __syncthreads() { host::barrier(); }

#define __HIP_MEMORY_SCOPE_AGENT 4

uint64_t __hip_atomic_load(const uint64_t* from, int order, int scope);
bool __hip_atomic_compare_exchange_strong(uint64_t* at, uint64_t* expected, uint64_t desired,
                                          int order, int order_of_failure, int scope);
uint64_t __hip_atomic_fetch_add(uint64_t* at, uint64_t value, int order, int scope);

// ---------------------------------------------------------------- what gpu.h has for AMD

#define ONLINE_SOFTMAX_BOUNDS(threads, blocks)

namespace online_softmax {

// As on the machines of that wave: of the kinds of slices, both are run.
constexpr bool kSharedMemoryIsLarge = warpSize == 32;

inline float native_exp2(float x) { return exp2f(x); }

template <typename To, typename From>
To reinterpret(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

inline float native_from_half(uint16_t bits) { return reinterpret<_Float16>(bits); }

inline uint16_t native_half_bits(float x) {
  return reinterpret<uint16_t>(static_cast<_Float16>(x));
}

inline uint32_t native_two_halves(float low, float high) {
  return native_half_bits(low) | uint32_t{native_half_bits(high)} << 16;
}

inline uint32_t native_bfloat16_bits(float x) {
  const auto bits = reinterpret<uint32_t>(x);
  if (x != x) return bits >> 16 | 0x40;             // stays NaN, whatever its payload
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;  // to nearest, ties to even
}

inline uint32_t native_two_bfloat16s(float low, float high) {
  return native_bfloat16_bits(low) | native_bfloat16_bits(high) << 16;
}

inline uint32_t native_max_halves(uint32_t a, uint32_t b) {
  const auto half = [](uint32_t bits) { return native_from_half(static_cast<uint16_t>(bits)); };
  return native_two_halves(fmaxf(half(a), half(b)), fmaxf(half(a >> 16), half(b >> 16)));
}

inline uint32_t native_max_bfloat16s(uint32_t a, uint32_t b) {
  const auto low = [](uint32_t word) { return reinterpret<float>(word << 16); };
  const auto high = [](uint32_t word) { return reinterpret<float>(word & 0xffff0000u); };
  return native_two_bfloat16s(fmaxf(low(a), low(b)), fmaxf(high(a), high(b)));
}

inline void native_load(uint32_t (&to)[4], const void* global) { host::load(to, global); }
inline void native_store(void* global, const uint32_t (&from)[4]) { host::store(global, from); }

inline void native_opaque(uint32_t& word) { asm volatile("" : "+r"(word)); }
template <typename T>
inline void native_hold(T*&) {}

inline void native_copy_to_shared(void* shared, const void* global) {
  host::copy_later(shared, global);
}
inline void native_wait_for_copies() { host::copy_now(); }

inline bool native_starts_early(const void*) { return false; }
template <typename... Parameters, typename... Arguments>
void native_launch(bool, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                   hipStream_t stream, Arguments... arguments) {
  hipLaunchKernelGGL(kernel, grid, block, shared, stream, arguments...);
}
inline void native_let_next_start() {}
inline void native_wait_for_stream() {}

}  // namespace online_softmax
