// online — one walk less: the first walk keeps the normalizer pair (pair.h), so that maximum
// and normalizer come out of it together; the second writes.
//
// Units: 2 reads + 1 write an element. Serves every shape.
// Occupancy: 6 waves a SIMD or more, 2 on gfx906.
#pragma once

#include <hip/hip_runtime.h>

#include "rows.h"

namespace online_softmax {

template <typename T, int kThreads>
__global__ void __launch_bounds__(kThreads)
    online_kernel(const T* x, T* y, int64_t rows, int64_t cols) {
  using Value = Real<T>;
  __shared__ Pair<Value> scratch[2][kThreads / kSmallestWave];
  int turn = 0;

  for (int64_t index = blockIdx.x; index < rows; index += gridDim.x) {
    const Row<T> row(x, y, index, cols);

    auto p = Pair<Value>::identity();
    row.each(0, row.vectors, true, [&](const auto& values) { p = update(p, values); });
    p = reduce_block_pairs<kThreads>(p, scratch[turn ^= 1]);

    const Value s = shift(p.m);
    const Value scale = 1 / p.d;
    row.map(0, row.vectors, true, [&](Value value) { return weight(value, s) * scale; });
  }
}

}  // namespace online_softmax
