// Softmax of each row of a matrix, on the CPU.
//
// A row is cut into blocks that fit in the L1 cache, so memory sees a block once
// however often a step walks it. The units count what goes past L1, per element:
//
//   naive   3 reads + 1 write   max; sum of e^(x - max); e^(x - max) / sum
//   online  2 reads + 1 write   pair (m, d) of the row in one step; e^(x - m) / d
//   block   2 reads + 2 writes  e^(x - max of its block) is kept in y and rescaled
//                               once the row's pair is known
//
// Naive and online take the exponential of an element twice, block takes it once.
// Block's second read and write are of what it has just written: they cost little
// where a row of y fits in L2.
//
// The loops are plain. `omp simd` says that their iterations may run side by side, and
// nothing about the arithmetic is relaxed: NaN, infinities and denormals stay IEEE's.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "launch.h"

// GCC otherwise keeps the branch of `exp_2p32`, and with it a scalar loop; nobody here
// traps floating-point exceptions. Clang has this by default. (OpenMP is the build's
// affair: without it the loops are slow and at::parallel_for runs on one thread.)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif

// One text, several instruction sets: the loader takes the best clone the machine
// can run. Elsewhere the compiler's target decides (on 64-bit Arm: NEON).
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && __GNUC__ >= 12
#define CLONE_PER_ISA __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONE_PER_ISA
#endif

// A loop is compiled for a clone's instruction set only if it stands in the clone,
// and a function called from a loop keeps it from being vectorised.
#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE inline
#endif

namespace online_softmax {
namespace {

// ---- the exponential

ALWAYS_INLINE uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

ALWAYS_INLINE float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// 2^32 e^x for x <= 0. The factor keeps what would be a denormal a normal number; it
// cancels when a row is divided by its sum, and only there, once, is the result rounded
// to a denormal. Below -104, e^x is less than half the least denormal: zero. NaN gives
// NaN. With FMA the result is off by 1 ulp near 0 and by 3 at -20, where an ulp is 1e-9
// of one at the row's maximum.
ALWAYS_INLINE float exp_2p32(float x) {
  // x log2(e) = n + f, n an integer and |f| <= 1/2: added to 1.5 * 2^23, a float is
  // rounded to an integer, which is then in the low bits.
  constexpr float kLog2e = 1.44269504f;
  constexpr float kRounder = 12582912.0f;
  const uint32_t rounded = bits_of(x * kLog2e + kRounder);
  const int32_t n = static_cast<int32_t>(rounded - 0x4b400000u);
  const float f = x * kLog2e - static_cast<float>(n);

  // 2^f: the polynomial of least relative error on [-1/2, 1/2] that is 1 at 0.
  float p = 1.535336341e-04f;
  p = p * f + 1.339887385e-03f;
  p = p * f + 9.618436918e-03f;
  p = p * f + 5.550332367e-02f;
  p = p * f + 2.402264774e-01f;
  p = p * f + 6.931471825e-01f;
  p = p * f + 1.0f;

  const float power = float_of((rounded << 23) + ((127u + 32u) << 23));  // 2^(n + 32)
  return x < -104.0f ? 0.0f : p * power;
}

// ---- what is done to a block

// Long rows ask for short blocks: the pass over a block that takes its maximum waits
// for memory, the pass that takes its exponentials does not, and while it runs the
// machine fetches ahead about this far (4 KiB).
constexpr int64_t kBlock = 1024;

// A max of -inf stands for "no element yet": as a reference it would give
// -inf - -inf = NaN, so 0 takes its place and e^(-inf - 0) = 0 comes out.
ALWAYS_INLINE float reference(float m) {
  return m == -std::numeric_limits<float>::infinity() ? 0.0f : m;
}

ALWAYS_INLINE float max_of(const float* x, int64_t n) {
  float m = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : m)
  for (int64_t i = 0; i < n; ++i) m = x[i] > m ? x[i] : m;  // passes over NaN; the sum will not
  return m;
}

// A sum runs in this many lanes, whatever the instruction set, and the lanes are added
// as a tree: a term goes through few additions, so little is lost to their rounding.
constexpr int64_t kLanes = 64;

template <int64_t n>
ALWAYS_INLINE float sum_of_lanes(float* lane) {
  if constexpr (n == 1) {
    return lane[0];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n / 2; ++i) lane[i] += lane[i + n / 2];
    return sum_of_lanes<n / 2>(lane);
  }
}

template <bool keep>
ALWAYS_INLINE void add_exp(const float* x, float* y, int64_t n, float m, float* lane) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float e = exp_2p32(x[i] - m);
    if (keep) y[i] = e;
    lane[i] += e;
  }
}

// The sum of 2^32 e^(x - m), whose terms `keep` leaves in y.
template <bool keep>
ALWAYS_INLINE float sum_exp(const float* x, float* y, int64_t n, float m) {
  float lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) add_exp<keep>(x + i, y + i, kLanes, m, lane);
  add_exp<keep>(x + i, y + i, n - i, m, lane);
  return sum_of_lanes<kLanes>(lane);
}

ALWAYS_INLINE void write_exp(const float* x, float* y, int64_t n, float m, float inverse) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = exp_2p32(x[i] - m) * inverse;
}

// Two factors, not their product: that may underflow where the result does not.
ALWAYS_INLINE void rescale(float* y, int64_t n, float factor, float inverse) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] * factor * inverse;
}

// ---- pairs

// The maximum of some elements and 2^32 times the sum of their e^(x - m).
struct Pair {
  float m;
  float d;
};

// The pair of a row from its blocks' pairs, in the order of the blocks whoever
// computed them: the result does not depend on the number of threads.
ALWAYS_INLINE Pair combine(const Pair* pairs, int64_t n) {
  if (n == 1) return pairs[0];
  float m = pairs[0].m;
  for (int64_t i = 1; i < n; ++i) m = pairs[i].m > m ? pairs[i].m : m;
  double d = 0;  // a row may have thousands of blocks; their roundings would add up
  for (int64_t i = 0; i < n; ++i) {
    d += pairs[i].d * (exp_2p32(pairs[i].m - reference(m)) * 0x1p-32f);
  }
  return {m, static_cast<float>(d)};
}

// ---- the rungs

struct Work {
  Algorithm rung;
  const float* x;
  float* y;
  int64_t cols;
  int64_t blocks;  // in a row
  int steps;       // of the rung; the row's pair is combined after each but the last
};

// One step on one block. `pair` is the block's own, kept between the steps; `row` is
// the row's. A row of -inf has d = 0, and 0 * (1 / 0) makes it the NaN that it is.
ALWAYS_INLINE void step_on_block(const Work& work, int step, int64_t row_index, int64_t block,
                                 Pair& pair, Pair row) {
  const int64_t n = std::min(kBlock, work.cols - block * kBlock);
  const float* x = work.x + row_index * work.cols + block * kBlock;
  float* y = work.y + row_index * work.cols + block * kBlock;
  const bool last = step == work.steps - 1;

  if (work.rung == Algorithm::block) {
    if (!last) {
      pair.m = max_of(x, n);
      pair.d = sum_exp<true>(x, y, n, reference(pair.m));
    } else {
      // The exponential is 2^32 in a row of one block, and a short row is done sooner without.
      const float factor = work.blocks == 1 ? 0x1p32f : exp_2p32(pair.m - reference(row.m));
      rescale(y, n, factor, 0x1p-32f / row.d);
    }
  } else if (last) {
    write_exp(x, y, n, reference(row.m), 1.0f / row.d);
  } else if (work.rung == Algorithm::online) {
    pair.m = max_of(x, n);
    pair.d = sum_exp<false>(x, y, n, reference(pair.m));
  } else if (step == 0) {
    pair.m = max_of(x, n);
    pair.d = 0;
  } else {
    pair.m = row.m;
    pair.d = sum_exp<false>(x, y, n, reference(row.m));
  }
}

// Rows [begin, end), each with all its steps: a row that fits in a cache is read from
// memory once. `pairs` holds one row's.
CLONE_PER_ISA void whole_rows(const Work& work, int64_t begin, int64_t end, Pair* pairs) {
  for (int64_t row = begin; row < end; ++row) {
    Pair total{};
    for (int step = 0; step < work.steps; ++step) {
      for (int64_t b = 0; b < work.blocks; ++b) step_on_block(work, step, row, b, pairs[b], total);
      total = combine(pairs, work.blocks);
    }
  }
}

// One step on blocks [begin, end), counted from the first block of row `first_row`.
// `pairs` holds those of all the rows from there on; `totals`, a pair a row.
CLONE_PER_ISA void one_step(const Work& work, int step, int64_t first_row, int64_t begin,
                            int64_t end, Pair* pairs, const Pair* totals) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t row = i / work.blocks;
    step_on_block(work, step, first_row + row, i % work.blocks, pairs[i], totals[row]);
  }
}

CLONE_PER_ISA void combine_rows(const Work& work, int64_t rows, const Pair* pairs, Pair* totals) {
  for (int64_t row = 0; row < rows; ++row)
    totals[row] = combine(pairs + row * work.blocks, work.blocks);
}

}  // namespace

void softmax_cpu(Algorithm algorithm, const float* x, float* y, int64_t rows, int64_t cols) {
  // Block is the fastest at every shape measured, up to 2^26 columns: arithmetic bounds
  // the rows that caches hold, and it takes half the exponentials of the other two; in
  // longer rows that saves more than its second walk over y costs.
  if (algorithm == Algorithm::automatic) algorithm = Algorithm::block;
  const int64_t blocks = (cols + kBlock - 1) / kBlock;
  const Work work{algorithm, x, y, cols, blocks, algorithm == Algorithm::naive ? 3 : 2};

  // The elements that are worth a thread, and those from which a row is worth several.
  constexpr int64_t kGrain = 32768;
  constexpr int64_t kLongRow = 2 * kGrain;

  // Every thread takes as many whole rows as every other ...
  const int64_t left_over = cols < kLongRow ? 0 : rows % at::get_num_threads();
  const int64_t shared_out = rows - left_over;
  at::parallel_for(0, shared_out, std::max<int64_t>(1, kGrain / cols),
                   [&](int64_t begin, int64_t end) {
                     std::vector<Pair> pairs(blocks);
                     whole_rows(work, begin, end, pairs.data());
                   });

  // ... and long rows that are too few for that are split: all threads do one step on
  // them, a share of the blocks each, then the next step.
  if (left_over == 0) return;
  std::vector<Pair> pairs(left_over * blocks);
  std::vector<Pair> totals(left_over);
  for (int step = 0; step < work.steps; ++step) {
    at::parallel_for(0, left_over * blocks, kGrain / kBlock, [&](int64_t begin, int64_t end) {
      one_step(work, step, shared_out, begin, end, pairs.data(), totals.data());
    });
    combine_rows(work, left_over, pairs.data(), totals.data());
  }
}

}  // namespace online_softmax
