// block — one read for longer rows: a block holds a row in its registers, and the waves' pairs
// meet in shared memory.
//
// Units: 1 read + 1 write an element. Serves rows of up to kThreads · kInRegisters vectors.
#pragma once

#include <hip/hip_runtime.h>

#include "slice.h"

namespace online_softmax {

template <typename T, int kThreads, int kInRegisters, int kBlocksPerUnit>
__global__ void ONLINE_SOFTMAX_BOUNDS(kThreads, kBlocksPerUnit)
    block_kernel(const T* x, T* y, int64_t rows, int64_t cols) {
  __shared__ Pair<Real<T>> scratch[2][kThreads / kSmallestWave];
  int turn = 0;

  for (int64_t index = blockIdx.x; index < rows; index += gridDim.x) {
    const Row<T> row(x, y, index, cols);
    Slice<T, kThreads, kInRegisters, 0> slice(row, 0, row.vectors, true, thread_index(), nullptr);
    slice.load();
    slice.store(reduce_wave_pairs<kThreads>(slice.pair(), scratch[turn ^= 1]));
  }
}

}  // namespace online_softmax
