// gang — one read for long rows: several blocks hold a row, a slice each, publish the pairs of
// their slices, wait for the others', and write.
//
// Units: 1 read + 1 write an element, and 8 bytes a block. Serves rows that the device can hold
// on chip, with x and y apart.
// Occupancy: 4 waves a SIMD or more, 2 on gfx906.
//
// A slice's pair is published as one 64-bit word in memory that starts as zero. What makes the
// waiting right:
//
//   - Zero is no pair: d >= 1 where m is finite, or d is NaN, or m = −∞ (which is not zero).
//   - A word carries all that it says, so its accesses are atomic but relaxed; at agent scope,
//     since the blocks of a row may sit behind different caches, where a plain poll reads stale
//     lines for ever.
//   - Nothing is asked of the scheduler. After `patience` polls a block computes the pair of a
//     missing slice itself, and publishes it (decoupled fallback: Smith, Levien & Owens, SPAA
//     2025). So it ends whether or not the missing block ever runs beside it: starved by another
//     stream, or with fewer blocks resident than a row needs.
//   - Helpers begin at their own rank and look again before each slice, so they share the work.
//   - The first to publish wins, by compare-and-swap, and all use the winner. The fallback runs
//     the arithmetic of the block that it stands in for, and pairs are combined in rank order,
//     never in order of arrival: the bits do not depend on who came first.
//   - A wave decides on the ranks that it watches and shared memory tells the block, so that its
//     threads never disagree.
//   - Who has helped loads its registers again, so that the rare path takes no registers from the
//     common one.
//
// The words are cleared by a kernel of their own, under which the gang may start and read.
#pragma once

#include <hip/hip_runtime.h>

#include "slice.h"

namespace online_softmax {

struct GangOptions {
  int patience;    // polls before a block helps
  int late_every;  // for tests: every so many blocks dawdle before they publish; 0: none does
};

using Word = uint64_t;

__device__ __forceinline__ Word look(const Word* at) {
  return __hip_atomic_load(at, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

__device__ __forceinline__ void publish(Word* at, Pair<float> p) {
  Word empty = 0;
  __hip_atomic_compare_exchange_strong(at, &empty, bit_cast<Word>(p), __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

constexpr int kNothing = 1 << 30;

// What was seen of some of a row's ranks.
struct Verdict {
  Pair<float> row;  // over the ranks that had published
  int missing;      // how far the nearest rank that had not is ahead of the own one, or kNothing
};

__device__ __forceinline__ Verdict join(Verdict a, Verdict b) {
  return {combine(a.row, b.row), a.missing < b.missing ? a.missing : b.missing};
}

// Each lane of the block watches the rank of its own number, and every kThreads further.
template <int kThreads>
__device__ __forceinline__ Verdict watch(const Word* words, int ranks, int own, int patience) {
  auto p = Pair<float>::identity();
  int nearest = kNothing;
  for (int base = thread_index() - lane_index(); base < ranks; base += kThreads) {
    const int rank = base + lane_index();
    const bool watching = rank < ranks;
    Word word = watching ? look(words + rank) : 0;
    for (int poll = 0; poll < patience && __any(watching && word == 0); ++poll) {
      if (watching && word == 0) word = look(words + rank);
    }
    if (word != 0) {
      p = combine(p, bit_cast<Pair<float>>(word));
    } else if (watching) {
      const int ahead = rank < own ? rank + ranks - own : rank - own;
      nearest = ahead < nearest ? ahead : nearest;
    }
  }
  if (__any(nearest != kNothing)) {
    nearest = reduce<kWave>(nearest, [](int a, int b) { return a < b ? a : b; });
  }
  return {reduce_pairs<kWave>(p), nearest};
}

template <int kThreads>
__global__ void __launch_bounds__(kThreads) gang_clear_kernel(Word* words, int64_t count) {
  native_let_next_start();
  for (int64_t i = blockIdx.x * int64_t{kThreads} + thread_index(); i < count;
       i += gridDim.x * int64_t{kThreads}) {
    words[i] = 0;
  }
}

// Block b takes slice b % ranks of row b / ranks; the first slice includes the row's edges.
// `words`: rows · ranks zeros. `fallbacks` counts the slices that were helped.
template <typename T, int kThreads, int kInRegisters, int kInShared, int kBlocksPerUnit>
__global__ void ONLINE_SOFTMAX_BOUNDS(kThreads, kBlocksPerUnit)
    gang_kernel(const T* x, T* y, int64_t cols, int ranks, int slice_vectors, Word* words,
                Word* fallbacks, GangOptions options) {
  extern __shared__ uint4 dynamic_shared[];
  __shared__ Pair<float> scratch[kThreads / kSmallestWave];
  __shared__ Verdict verdicts[kThreads / kSmallestWave];

  const int index = static_cast<int>(blockIdx.x) / ranks;
  const int own = static_cast<int>(blockIdx.x) % ranks;
  const Row<T> row(x, y, index, cols);
  Word* const mail = words + static_cast<int64_t>(index) * ranks;

  const auto slice_of = [&](int rank) {
    const int64_t begin = static_cast<int64_t>(rank) * slice_vectors;
    const int64_t end = begin + slice_vectors;
    return Slice<T, kThreads, kInRegisters, kInShared, false>(
        row, begin, end < row.vectors ? end : row.vectors, rank == 0, thread_index(),
        reinterpret_cast<Vector<T>*>(dynamic_shared));
  };
  const auto publish_pair = [&](int rank, Pair<float> wave_pair) {
    const auto p = reduce_wave_pairs<kThreads>(wave_pair, scratch);
    if (thread_index() == 0) publish(mail + rank, p);
  };

  auto slice = slice_of(own);
  slice.load();
  native_wait_for_stream();
  if (options.late_every > 0 && blockIdx.x % options.late_every == 0) {
    // Until somebody has helped, but not for ever.
    for (int poll = 0; poll < 64 * options.patience && look(mail + own) == 0; ++poll) {
    }
  }
  publish_pair(own, slice.pair());

  const int watched = ranks < kThreads ? ranks : kThreads;
  const auto meet = [&](int patience) {
    if (thread_index() - lane_index() < watched) {
      const Verdict seen = watch<kThreads>(mail, ranks, own, patience);
      if (lane_index() == 0) verdicts[wave_index()] = seen;
    }
    __syncthreads();
    Verdict all = verdicts[0];
#pragma unroll 1
    for (int w = 1; w * kWave < watched; ++w) all = join(all, verdicts[w]);
    return all;
  };
  Verdict met = meet(options.patience);
  if (met.missing != kNothing) {
    do {
      const int rank = (own + met.missing) % ranks;
      publish_pair(rank, slice_of(rank).pair_from_memory());
      if (thread_index() == 0) {
        __hip_atomic_fetch_add(fallbacks, Word{1}, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
      }
      met = meet(0);
    } while (met.missing != kNothing);
    slice.load_registers();
  }
  slice.store(met.row);
}

}  // namespace online_softmax
