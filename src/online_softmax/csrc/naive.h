// naive — the baseline: a block takes a row and walks it three times, for the maximum, for
// the normalizer, for the result.
//
// Units: 3 reads + 1 write an element. Serves every shape.
#pragma once

#include <hip/hip_runtime.h>

#include "rows.h"

namespace online_softmax {

template <typename T, int kThreads>
__global__ void __launch_bounds__(kThreads)
    naive_kernel(const T* x, T* y, int64_t rows, int64_t cols) {
  __shared__ T scratch[kThreads / kSmallestWave];
  const auto larger = [](T a, T b) { return fmax(a, b); };
  const auto sum = [](T a, T b) { return a + b; };

  for (int64_t index = blockIdx.x; index < rows; index += gridDim.x) {
    const Row<T> row(x, y, index, cols);

    T m = -T(INFINITY);
    row.each([&](const auto& values) {
      for (const T value : values) m = larger(m, value);
    });
    m = block_reduce(m, -T(INFINITY), scratch, larger);

    const T s = shift(m);
    T d = 0;
    row.each([&](const auto& values) {
      for (const T value : values) d += weight(value, s);
    });
    d = block_reduce(d, T(0), scratch, sum);

    const T scale = 1 / d;
    row.map([&](T value) { return weight(value, s) * scale; });
  }
}

}  // namespace online_softmax
