// Softmax of each row of a matrix, on the CPU.
//
// Three rungs, and what each moves per element. A row is cut into blocks that
// stay in the L1 cache, so a block is read from memory once however often it is
// walked; the units below count what goes past L1.
//
//   naive   3 reads + 1 write   max of the row; sum of e^(x - max); e^(x - max) / sum
//   online  2 reads + 1 write   pair (m, d) of the row in one pass; e^(x - m) / d
//   block   2 reads + 2 writes  one e^x an element, kept as e^(x - block's max) and
//                               rescaled once the row's pair is known. In a row that
//                               fits in L2 the second read and write cost nothing.
//
// The loops are plain; `omp simd` lets the compiler reorder the reductions, and
// nothing else about the arithmetic is relaxed: NaN, infinities and denormals
// behave as IEEE says.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "launch.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif
#if defined(__linux__)
#include <unistd.h>
#endif

// One source, several instruction sets: the loader picks the best clone that the
// machine can run. Elsewhere the compiler's target is all there is (NEON on Arm).
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && __GNUC__ >= 12
#define FOR_EACH_ISA __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_ISA
#endif

// A clone's loops are vectorised for its instruction set only if they stand in it.
#if defined(__GNUC__)
#define INLINE inline __attribute__((always_inline))
#else
#define INLINE inline
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif
namespace online_softmax {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// ---------------------------------------------------------------- exponential

INLINE float from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

INLINE uint32_t to_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// 2^24 * e^x for x <= 0. 
INLINE float scaled_exp(float x) {
  float t = x * 1.44269504f;
  t = t < -150.0f ? -150.0f : t;  // NaN passes
  const uint32_t shifted = to_bits(t + 12582912.0f);
  const int32_t n = static_cast<int32_t>(shifted - 0x4b400000u);
  const float f = t - static_cast<float>(n);
#if DEG == 6
  float p = 1.535336341e-04f;
  p = p * f + 1.339887385e-03f;
  p = p * f + 9.618436918e-03f;
  p = p * f + 5.550332367e-02f;
  p = p * f + 2.402264774e-01f;
  p = p * f + 6.931471825e-01f;
#else
  float p = 1.326472731e-03f;
  p = p * f + 9.671512991e-03f;
  p = p * f + 5.550733581e-02f;
  p = p * f + 2.402224243e-01f;
  p = p * f + 6.931470037e-01f;
#endif
  p = p * f + 1.0f;
  return p * from_bits((shifted << 23) + ((127u + 24u) << 23));
}

// ---------------------------------------------------------------- blocks

#ifndef BLOCK
#define BLOCK 4096
#endif
constexpr int64_t kBlock = BLOCK;

struct Pair {
  float m;
  float d;
};

INLINE float max_of(const float* x, int64_t n) {
  float m = -kInfinity;
#pragma omp simd reduction(max : m)
  for (int64_t i = 0; i < n; ++i) m = x[i] > m ? x[i] : m;
  return m;
}

INLINE float finite(float m) { return m == -kInfinity ? 0.0f : m; }

#ifdef PREFETCH
#define CHUNK 256
#define FETCH for (int64_t k = 0; k < CHUNK; k += 16) __builtin_prefetch(x + n + c + k, 0, 2);
#endif

INLINE float sum_exp(const float* x, int64_t n, float m) {
  float d = 0;
#ifdef PREFETCH
  for (int64_t c = 0; c < n; c += CHUNK) {
    FETCH
    const int64_t e = std::min<int64_t>(c + CHUNK, n);
#pragma omp simd reduction(+ : d)
    for (int64_t i = c; i < e; ++i) d += scaled_exp(x[i] - m);
  }
#else
#pragma omp simd reduction(+ : d)
  for (int64_t i = 0; i < n; ++i) d += scaled_exp(x[i] - m);
#endif
  return d;
}

INLINE float store_exp(const float* x, float* y, int64_t n, float m) {
  float d = 0;
#ifdef PREFETCH
  for (int64_t c = 0; c < n; c += CHUNK) {
    FETCH
    const int64_t e = std::min<int64_t>(c + CHUNK, n);
#pragma omp simd reduction(+ : d)
    for (int64_t i = c; i < e; ++i) {
      const float v = scaled_exp(x[i] - m);
      y[i] = v;
      d += v;
    }
  }
#else
#pragma omp simd reduction(+ : d)
  for (int64_t i = 0; i < n; ++i) {
    const float e = scaled_exp(x[i] - m);
    y[i] = e;
    d += e;
  }
#endif
  return d;
}

INLINE void put(const float* e, float* y, int64_t n, float factor, bool stream) {
#if defined(__SSE2__)
  if (stream) {
    const __m128 f = _mm_set1_ps(factor);
    for (int64_t i = 0; i < n; i += 16) {
      _mm_stream_ps(y + i, _mm_mul_ps(_mm_loadu_ps(e + i), f));
      _mm_stream_ps(y + i + 4, _mm_mul_ps(_mm_loadu_ps(e + i + 4), f));
      _mm_stream_ps(y + i + 8, _mm_mul_ps(_mm_loadu_ps(e + i + 8), f));
      _mm_stream_ps(y + i + 12, _mm_mul_ps(_mm_loadu_ps(e + i + 12), f));
    }
    return;
  }
#endif
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = e[i] * factor;
}

struct Job {
  Algorithm algorithm;
  const float* x;
  float* y;
  int64_t cols;
  bool stream;
};

INLINE void phase_of(const Job& job, int phase, int64_t row, int64_t block, Pair* pair, Pair total, float* hold) {
  const int64_t begin = block * kBlock;
  const int64_t n = std::min(kBlock, job.cols - begin);
  const float* x = job.x + row * job.cols + begin;
  float* y = job.y + row * job.cols + begin;
  const bool last = phase == (job.algorithm == Algorithm::naive ? 2 : 1);
  if (!last) {
    switch (job.algorithm) {
      case Algorithm::naive:
        if (phase == 0) *pair = {max_of(x, n), 0};
        else *pair = {total.m, sum_exp(x, n, finite(total.m))};
        break;
      case Algorithm::online:
        pair->m = max_of(x, n);
        pair->d = sum_exp(x, n, finite(pair->m));
        break;
      default:
        pair->m = max_of(x, n);
        pair->d = store_exp(x, hold ? hold + begin : y, n, finite(pair->m));
    }
    return;
  }
  const float inv = total.m == -kInfinity ? NAN : 1.0f / total.d;
  if (job.algorithm == Algorithm::block) {
    const float f = pair->m == total.m ? inv : scaled_exp(pair->m - finite(total.m)) * 0x1p-24f * inv;
    put(hold ? hold + begin : y, y, n, f, job.stream);
  } else {
#ifdef DIRECT
    if (!job.stream) {
    const float m = finite(total.m);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = scaled_exp(x[i] - m) * inv;
    return;
    }
#endif
    alignas(64) float e[kBlock];
    store_exp(x, e, n, finite(total.m));
    put(e, y, n, inv, job.stream);
  }
}

INLINE Pair fold(const Pair* pairs, int64_t n) {
  Pair total = pairs[0];
  for (int64_t i = 1; i < n; ++i) {
    const Pair p = pairs[i];
    const float m = p.m > total.m ? p.m : total.m;
    total.d = total.d * scaled_exp(total.m - finite(m)) * 0x1p-24f + p.d * scaled_exp(p.m - finite(m)) * 0x1p-24f;
    total.m = m;
  }
  return total;
}

FOR_EACH_ISA void rows_of(const Job& job, int64_t first, int64_t last, Pair* pairs, float* hold) {
  const int64_t blocks = (job.cols + kBlock - 1) / kBlock;
  const int phases = job.algorithm == Algorithm::naive ? 3 : 2;
  for (int64_t row = first; row < last; ++row) {
    Pair total{};
    for (int phase = 0; phase < phases; ++phase) {
      for (int64_t b = 0; b < blocks; ++b) phase_of(job, phase, row, b, &pairs[b], total, hold);
      if (phase + 1 < phases) total = fold(pairs, blocks);
    }
  }
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

FOR_EACH_ISA void blocks_of(const Job& job, int phase, int64_t row, int64_t first, int64_t last, Pair* pairs, Pair total) {
  for (int64_t b = first; b < last; ++b) phase_of(job, phase, row, b, &pairs[b], total, nullptr);
#if defined(__SSE2__)
  _mm_sfence();
#endif
}
FOR_EACH_ISA Pair fold_of(const Pair* pairs, int64_t n) { return fold(pairs, n); }

}  // namespace

int g_stream = -1, g_hold = 1;

void softmax_cpu(Algorithm algorithm, const float* x, float* y, int64_t rows, int64_t cols) {
  const int64_t threads = at::get_num_threads();
  const int64_t blocks = (cols + kBlock - 1) / kBlock;
  if (algorithm == Algorithm::automatic) algorithm = Algorithm::block;
  bool stream = g_stream >= 0 ? g_stream : rows * cols * 8 > (32 << 20);
  stream = stream && cols % 16 == 0 && reinterpret_cast<uintptr_t>(y) % 64 == 0;
  const Job job{algorithm, x, y, cols, stream};
  const int64_t whole = blocks == 1 ? rows : rows - rows % threads;
  at::parallel_for(0, whole, std::max<int64_t>(1, 32768 / cols), [&](int64_t a, int64_t b) {
    std::vector<Pair> pairs(blocks);
    std::vector<float> hold(g_hold && algorithm == Algorithm::block ? cols : 0);
    rows_of(job, a, b, pairs.data(), hold.empty() ? nullptr : hold.data());
  });
  const int phases = job.algorithm == Algorithm::naive ? 3 : 2;
  std::vector<Pair> pairs(blocks);
  for (int64_t row = whole; row < rows; ++row) {
    Pair total{};
    for (int phase = 0; phase < phases; ++phase) {
      at::parallel_for(0, blocks, 8, [&](int64_t a, int64_t b) { blocks_of(job, phase, row, a, b, pairs.data(), total); });
      if (phase + 1 < phases) total = fold_of(pairs.data(), blocks);
    }
  }
}

}  // namespace online_softmax
