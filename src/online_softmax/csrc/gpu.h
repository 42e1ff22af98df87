// What depends on the architecture, in one place: number formats, the wave, 16-byte vectors,
// asynchronous copies to shared memory. Everything else is written in these terms.
//
// Functions named native_* are an instruction, or the shortest way to it. For AMD they stand
// here; another platform's stand beside its HIP names, in compat/.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>
#include <cstring>

#if defined(__HIP_PLATFORM_AMD__)

#define ONLINE_SOFTMAX_BOUNDS(threads, blocks) __launch_bounds__(threads)

namespace online_softmax {

// How a row's slice is best held: AMD's register file is eight times its shared memory.
constexpr bool kSharedMemoryIsLarge = false;

__host__ __device__ __forceinline__ float native_exp2(float x) {
#if defined(__AMDGCN__) && __has_builtin(__builtin_amdgcn_exp2f)
  return __builtin_amdgcn_exp2f(x);
#else
  return exp2f(x);
#endif
}

__device__ __forceinline__ float native_from_half(uint16_t bits) {
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
}

__device__ __forceinline__ uint32_t native_two_halves(float low, float high) {
  const _Float16 pair[2] = {static_cast<_Float16>(low), static_cast<_Float16>(high)};
  return __builtin_bit_cast(uint32_t, pair);
}

__device__ __forceinline__ uint32_t native_bfloat16_bits(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  if (x != x) return bits >> 16 | 0x40;             // stays NaN, whatever its payload
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;  // to nearest, ties to even
}

__device__ __forceinline__ uint32_t native_two_bfloat16s(float low, float high) {
  return native_bfloat16_bits(low) | native_bfloat16_bits(high) << 16;
}

__device__ __forceinline__ uint32_t native_max_halves(uint32_t a, uint32_t b) {
  using Pair = _Float16 __attribute__((ext_vector_type(2)));
  return __builtin_bit_cast(uint32_t, __builtin_elementwise_max(__builtin_bit_cast(Pair, a),
                                                                __builtin_bit_cast(Pair, b)));
}

__device__ __forceinline__ uint32_t native_max_bfloat16s(uint32_t a, uint32_t b) {
  const auto larger = [](uint32_t p, uint32_t q) {
    return __builtin_bit_cast(uint32_t,
                              fmaxf(__builtin_bit_cast(float, p), __builtin_bit_cast(float, q)));
  };
  return larger(a << 16, b << 16) >> 16 | larger(a & 0xffff0000u, b & 0xffff0000u);
}

// 16 bytes in one access of device memory.
using Words __attribute__((ext_vector_type(4))) = uint32_t;
__device__ __forceinline__ void native_load(uint32_t (&to)[4], const void* global) {
  const Words words = *static_cast<const Words*>(global);
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = words[i];
}
__device__ __forceinline__ void native_store(void* global, const uint32_t (&from)[4]) {
  *static_cast<Words*>(global) = Words{from[0], from[1], from[2], from[3]};
}

// A word of which the compiler knows nothing any more.
__device__ __forceinline__ void native_opaque(uint32_t& word) { asm volatile("" : "+v"(word)); }

// Has the compiler hold an address rather than compute it again. Not here: behind an asm it would
// no longer know that the address is one of device memory.
template <typename T>
__device__ __forceinline__ void native_hold(T*&) {}

// Copies 16 bytes to shared memory; here by way of registers.
__device__ __forceinline__ void native_copy_to_shared(void* shared, const void* global) {
  *static_cast<uint4*>(shared) = *static_cast<const uint4*>(global);
}
__device__ __forceinline__ void native_wait_for_copies() {}

// Elsewhere a kernel may be launched to start early, beneath the one ahead of it in the stream
// once that lets it, and waits for it before touching what it writes. Here kernels take turns.
inline bool native_starts_early(const void*) { return false; }
template <typename... Parameters, typename... Arguments>
void native_launch(bool, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                   hipStream_t stream, Arguments... arguments) {
  hipLaunchKernelGGL(kernel, grid, block, shared, stream, arguments...);
}
__device__ __forceinline__ void native_let_next_start() {}
__device__ __forceinline__ void native_wait_for_stream() {}

}  // namespace online_softmax

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

// ------------------------------------------------------------------------- numbers

// 16-bit formats are only stored; arithmetic is in float.
struct Half {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

template <typename T>
struct Arithmetic {
  using Type = float;
};
template <>
struct Arithmetic<double> {
  using Type = double;
};
template <typename T>
using Real = typename Arithmetic<T>::Type;

template <typename To, typename From>
__device__ __forceinline__ To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

// What is particular to a format that is stored two a word. Two numbers are read and written at
// a time: apart they would cost a shift each.
template <typename T>
struct TwoInAWord;

template <>
struct TwoInAWord<Half> {
  static constexpr uint32_t kMinusInfinities = 0xfc00fc00u;
  __device__ __forceinline__ static void unpack(uint32_t word, float& low, float& high) {
    low = native_from_half(static_cast<uint16_t>(word));
    high = native_from_half(static_cast<uint16_t>(word >> 16));
  }
  __device__ __forceinline__ static uint32_t pack(float low, float high) {
    return native_two_halves(low, high);
  }
  __device__ __forceinline__ static uint32_t larger(uint32_t a, uint32_t b) {
    return native_max_halves(a, b);
  }
};

template <>
struct TwoInAWord<Bfloat16> {
  static constexpr uint32_t kMinusInfinities = 0xff80ff80u;
  __device__ __forceinline__ static void unpack(uint32_t word, float& low, float& high) {
    low = bit_cast<float>(word << 16);
    high = bit_cast<float>(word & 0xffff0000u);
  }
  __device__ __forceinline__ static uint32_t pack(float low, float high) {
    return native_two_bfloat16s(low, high);
  }
  __device__ __forceinline__ static uint32_t larger(uint32_t a, uint32_t b) {
    return native_max_bfloat16s(a, b);
  }
};

template <typename T>
__device__ __forceinline__ Real<T> to_real(T x) {
  if constexpr (sizeof(T) == 2) {
    float low, high;
    TwoInAWord<T>::unpack(x.bits, low, high);
    return low;
  } else {
    return x;
  }
}

template <typename T>
__device__ __forceinline__ T from_real(Real<T> x) {
  if constexpr (sizeof(T) == 2) {
    return {static_cast<uint16_t>(TwoInAWord<T>::pack(x, 0))};
  } else {
    return x;
  }
}

// ------------------------------------------------------------------------- vectors

// 16 bytes, the widest access of a lane; its address is a multiple of 16. 16-bit numbers stay
// packed in it until they are used, so that a slice of them costs half the registers.
template <typename T>
struct alignas(16) Vector {
  static constexpr int kSize = 16 / sizeof(T);
  uint32_t words[4];

  __device__ __forceinline__ void unpack(Real<T> (&to)[kSize]) const {
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (int i = 0; i < 4; ++i) TwoInAWord<T>::unpack(words[i], to[2 * i], to[2 * i + 1]);
    } else {
      memcpy(to, words, sizeof words);
    }
  }

  __device__ __forceinline__ static Vector pack(const Real<T> (&from)[kSize]) {
    Vector v;
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (int i = 0; i < 4; ++i) v.words[i] = TwoInAWord<T>::pack(from[2 * i], from[2 * i + 1]);
    } else {
      memcpy(v.words, from, sizeof v.words);
    }
    return v;
  }

  __device__ __forceinline__ static Vector minus_infinities() {
    if constexpr (sizeof(T) == 2) {
      constexpr uint32_t two = TwoInAWord<T>::kMinusInfinities;
      return {{two, two, two, two}};
    } else {
      Real<T> values[kSize];
#pragma unroll
      for (Real<T>& value : values) value = -Real<T>(INFINITY);
      return pack(values);
    }
  }

  __device__ __forceinline__ Real<T> largest() const {
    if constexpr (sizeof(T) == 2) {
      const auto larger = TwoInAWord<T>::larger;
      float low, high;
      TwoInAWord<T>::unpack(larger(larger(words[0], words[1]), larger(words[2], words[3])), low,
                            high);
      return fmax(low, high);
    } else {
      Real<T> values[kSize];
      unpack(values);
      Real<T> m = values[0];
#pragma unroll
      for (int i = 1; i < kSize; ++i) m = fmax(m, values[i]);
      return m;
    }
  }

  // Keeps the compiler from holding on to numbers that it unpacked before: 16-bit ones take twice
  // the registers unpacked.
  __device__ __forceinline__ void forget_unpacked() {
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (uint32_t& word : words) native_opaque(word);
    }
  }
};

template <typename T>
__device__ __forceinline__ Vector<T> load_vector(const T* global) {
  Vector<T> v;
  native_load(v.words, global);
  return v;
}
template <typename T>
__device__ __forceinline__ void store_vector(T* global, const Vector<T>& v) {
  native_store(global, v.words);
}

// ------------------------------------------------------------------- waves and blocks

// Lanes in a wave: 64 on AMD's gfx9 (CDNA), 32 on gfx10 to gfx12 (RDNA) and on NVIDIA. True in
// device code only; the host asks the device.
#if defined(__GFX9__)
constexpr int kWave = 64;
#else
constexpr int kWave = 32;
#endif
constexpr int kSmallestWave = 32;

__device__ __forceinline__ int thread_index() { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ int lane_index() { return thread_index() % kWave; }
__device__ __forceinline__ int wave_index() { return thread_index() / kWave; }

struct Larger {
  template <typename V>
  __device__ __forceinline__ V operator()(V a, V b) const {
    return fmax(a, b);
  }
};
struct Sum {
  template <typename V>
  __device__ __forceinline__ V operator()(V a, V b) const {
    return a + b;
  }
};

// Each lane gets the reduction over the `kLanes` lanes that it is one of: a wave, or an aligned
// part of one.
template <int kLanes, typename V, typename Op>
__device__ __forceinline__ V reduce(V v, Op op) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) v = op(v, __shfl_xor(v, mask));
  return v;
}

// `combine` over lanes: the common maximum first, then each normalizer rescaled to it once, so
// that a tree of any depth costs one exponential. (fma with 0 is a product that no compiler
// fuses with the sum, so the bits are the same wherever this is inlined.)
template <int kLanes, typename R>
__device__ __forceinline__ Pair<R> reduce_pairs(Pair<R> p) {
  const R m = reduce<kLanes>(p.m, Larger());
  return {m, reduce<kLanes>(fma(p.d, weight(p.m, shift(m)), R(0)), Sum())};
}

// Each thread gets the reduction over its block of what each wave's lanes agree on: a `step`
// from the waves' values, one a lane, to their reduction. `scratch`, one V a wave in shared
// memory, may be written again only after another barrier, since a slow wave may still be
// reading it; callers that come back at once alternate between two.
template <int kThreads, typename V, typename Step>
__device__ __forceinline__ V across_waves(V v, V* scratch, Step step) {
  if (lane_index() == 0) scratch[wave_index()] = v;
  __syncthreads();
  return step(scratch[lane_index() % (kThreads / kWave)]);
}

template <int kThreads, typename V, typename Op>
__device__ __forceinline__ V reduce_block(V v, V* scratch, Op op) {
  return across_waves<kThreads>(reduce<kWave>(v, op), scratch,
                                [&](V each) { return reduce<kThreads / kWave>(each, op); });
}

// From the waves' pairs to the block's.
template <int kThreads, typename R>
__device__ __forceinline__ Pair<R> reduce_wave_pairs(Pair<R> p, Pair<R>* scratch) {
  return across_waves<kThreads>(p, scratch,
                                [](Pair<R> each) { return reduce_pairs<kThreads / kWave>(each); });
}

// From the lanes' pairs to the block's.
template <int kThreads, typename R>
__device__ __forceinline__ Pair<R> reduce_block_pairs(Pair<R> p, Pair<R>* scratch) {
  return reduce_wave_pairs<kThreads>(reduce_pairs<kWave>(p), scratch);
}

}  // namespace online_softmax
