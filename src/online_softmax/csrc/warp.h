// warp — one read: a wave, or an aligned part of one, holds a whole row in registers. No shared
// memory and no barrier, so short rows cost little more than their bytes.
//
// Units: 1 read + 1 write an element. Serves rows of up to kLanes · kInRegisters vectors.
// Occupancy: 8 waves a SIMD or more, 4 on gfx906.
#pragma once

#include <hip/hip_runtime.h>

#include "slice.h"

namespace online_softmax {

template <typename T, int kThreads, int kLanes, int kInRegisters>
__global__ void __launch_bounds__(kThreads)
    warp_kernel(const T* x, T* y, int64_t rows, int64_t cols) {
  constexpr int kRows = kThreads / kLanes;  // a block
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kRows + thread_index() / kLanes;

  for (int64_t index = first; index < rows; index += static_cast<int64_t>(gridDim.x) * kRows) {
    const Row<T> row(x, y, index, cols);
    Slice<T, kLanes, kInRegisters, 0, true> slice(row, 0, row.vectors, true,
                                                  thread_index() % kLanes, nullptr);
    slice.load();
    slice.store(slice.pair());
  }
}

}  // namespace online_softmax
