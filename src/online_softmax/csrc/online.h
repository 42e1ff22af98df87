// online — one walk less: the first walk keeps the normalizer pair (pair.h), so that maximum
// and normalizer come out of it together; the second writes.
//
// Units: 2 reads + 1 write an element. Serves every shape.
#pragma once

#include <hip/hip_runtime.h>

#include "rows.h"

namespace online_softmax {

template <typename T, int kThreads>
__global__ void __launch_bounds__(kThreads)
    online_kernel(const T* x, T* y, int64_t rows, int64_t cols) {
  __shared__ Pair<T> scratch[kThreads / kSmallestWave];

  for (int64_t index = blockIdx.x; index < rows; index += gridDim.x) {
    const Row<T> row(x, y, index, cols);

    auto p = Pair<T>::identity();
    row.each([&](const auto& values) { p = update(p, values); });
    p = block_reduce(p, Pair<T>::identity(), scratch,
                     [](Pair<T> a, Pair<T> b) { return combine(a, b); });

    const T s = shift(p.m);
    const T scale = 1 / p.d;
    row.map([&](T value) { return weight(value, s) * scale; });
  }
}

}  // namespace online_softmax
