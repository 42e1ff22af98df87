// split — many blocks a row, in two launches: one leaves the pair of each slice in memory, the
// next combines a row's pairs and writes. Nothing waits for anything, so it asks nothing of the
// device, and a row may be of any length.
//
// Units: 2 reads + 1 write an element. Serves every shape; meant for few long rows where gang
// cannot go.
// Occupancy: 6 waves a SIMD or more, 2 on gfx906.
#pragma once

#include <hip/hip_runtime.h>

#include "rows.h"

namespace online_softmax {

// Block b takes slice b % ranks of row b / ranks; the first slice includes the row's edges.
template <typename T, int kThreads>
__global__ void __launch_bounds__(kThreads)
    split_reduce_kernel(const T* x, T* y, int64_t rows, int64_t cols, int ranks,
                        int64_t slice_vectors, Pair<float>* pairs) {
  __shared__ Pair<float> scratch[2][kThreads / kSmallestWave];
  int turn = 0;

  for (int64_t b = blockIdx.x; b < rows * ranks; b += gridDim.x) {
    const Row<T> row(x, y, b / ranks, cols);
    const int64_t begin = b % ranks * slice_vectors;
    const int64_t end = begin + slice_vectors < row.vectors ? begin + slice_vectors : row.vectors;

    auto p = Pair<float>::identity();
    row.each(begin, end, begin == 0, [&](const auto& values) { p = update(p, values); });
    p = reduce_block_pairs<kThreads>(p, scratch[turn ^= 1]);
    if (thread_index() == 0) pairs[b] = p;
  }
}

template <typename T, int kThreads>
__global__ void __launch_bounds__(kThreads)
    split_write_kernel(const T* x, T* y, int64_t rows, int64_t cols, int ranks,
                       int64_t slice_vectors, const Pair<float>* pairs) {
  for (int64_t b = blockIdx.x; b < rows * ranks; b += gridDim.x) {
    const Row<T> row(x, y, b / ranks, cols);
    const int64_t begin = b % ranks * slice_vectors;
    const int64_t end = begin + slice_vectors < row.vectors ? begin + slice_vectors : row.vectors;

    auto p = Pair<float>::identity();
    for (int rank = lane_index(); rank < ranks; rank += kWave) {
      p = combine(p, pairs[b / ranks * ranks + rank]);
    }
    p = reduce_pairs<kWave>(p);

    const float s = shift(p.m);
    const float scale = 1 / p.d;
    row.map(begin, end, begin == 0, [&](float value) { return weight(value, s) * scale; });
  }
}

}  // namespace online_softmax
