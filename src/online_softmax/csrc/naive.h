// naive — the baseline: a block takes a row and walks it three times, for the maximum, for the
// normalizer, for the result.
//
// Units: 3 reads + 1 write an element. Serves every shape.
// Occupancy: 6 waves a SIMD or more, 2 on gfx906.
#pragma once

#include <hip/hip_runtime.h>

#include "rows.h"

namespace online_softmax {

template <typename T, int kThreads>
__global__ void __launch_bounds__(kThreads)
    naive_kernel(const T* x, T* y, int64_t rows, int64_t cols) {
  using Value = Real<T>;
  __shared__ Value maxima[kThreads / kSmallestWave];
  __shared__ Value sums[kThreads / kSmallestWave];

  for (int64_t index = blockIdx.x; index < rows; index += gridDim.x) {
    const Row<T> row(x, y, index, cols);

    Value m = -Value(INFINITY);
    row.each(0, row.vectors, true, [&](const auto& values) {
      for (const Value value : values) m = fmax(m, value);
    });
    m = reduce_block<kThreads>(m, maxima, Larger());

    const Value s = shift(m);
    Value d = 0;
    row.each(0, row.vectors, true, [&](const auto& values) {
      for (const Value value : values) d += weight(value, s);
    });
    d = reduce_block<kThreads>(d, sums, Sum());

    const Value scale = 1 / d;
    row.map(0, row.vectors, true, [&](Value value) { return weight(value, s) * scale; });
  }
}

}  // namespace online_softmax
