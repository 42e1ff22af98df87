// block — one read for longer rows: a block holds a row, in registers and then in shared memory,
// and the waves' pairs meet there.
//
// Units: 1 read + 1 write an element. Serves rows of up to kThreads · (kInRegisters + kInShared)
// vectors.
// Occupancy: 8 waves a SIMD or more, 4 on gfx906.
#pragma once

#include <hip/hip_runtime.h>

#include "slice.h"

namespace online_softmax {

template <typename T, int kThreads, int kInRegisters, int kInShared, int kBlocksPerUnit>
__global__ void ONLINE_SOFTMAX_BOUNDS(kThreads, kBlocksPerUnit)
    block_kernel(const T* x, T* y, int64_t cols) {
  extern __shared__ uint4 dynamic_shared[];
  __shared__ Pair<Real<T>> scratch[kThreads / kSmallestWave];

  const Row<T> row(x, y, blockIdx.x, cols);
  Slice<T, kThreads, kInRegisters, kInShared, true> slice(
      row, 0, row.vectors, true, thread_index(), reinterpret_cast<Vector<T>*>(dynamic_shared));
  slice.load();
  slice.store(reduce_wave_pairs<kThreads>(slice.pair(), scratch));
}

}  // namespace online_softmax
