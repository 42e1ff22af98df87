// A block's way through one row, 16 bytes a lane at a time, whatever the row's alignment.
//
// A row of any length at any address is an aligned body of whole vectors with an edge of at
// most kSize − 1 elements on either side. The body takes 16-byte accesses; the edges go to
// one lane an element. So an odd column count costs a few predicated scalars, never a scalar
// loop. Where x and y disagree in alignment (one of them is a slice), y keeps its 16-byte
// stores and x is read by element: the cache line is fetched once either way.
#pragma once

#include <hip/hip_runtime.h>

#include "gpu.h"

namespace online_softmax {

template <typename T>
class Row {
 public:
  static constexpr int kSize = Vector<T>::kSize;

  // Row `index` of the matrices x and y, both contiguous with `cols` columns.
  __device__ Row(const T* x, T* y, int64_t index, int64_t cols)
      : x_(x + index * cols), y_(y + index * cols) {
    const int past = reinterpret_cast<uintptr_t>(y_) / sizeof(T) % kSize;
    const int64_t before = past == 0 ? 0 : kSize - past;
    head_ = static_cast<int>(before < cols ? before : cols);
    vectors_ = (cols - head_) / kSize;
    tail_ = static_cast<int>(cols - head_ - vectors_ * kSize);
    x_aligned_ = reinterpret_cast<uintptr_t>(x_ + head_) % sizeof(Vector<T>) == 0;
  }

  // Calls see(const T (&values)[N]) until the block's lanes have seen every element once.
  template <typename See>
  __device__ void each(See see) const {
#pragma unroll 4
    for (int64_t i = thread_index(); i < vectors_; i += blockDim.x) see(load(i).at);
    if (has_edge()) {
      const T value[1] = {x_[edge()]};
      see(value);
    }
  }

  // y = f(x), element by element.
  template <typename F>
  __device__ void map(F f) const {
    for (int64_t i = thread_index(); i < vectors_; i += blockDim.x) {
      Vector<T> v = load(i);
#pragma unroll
      for (int j = 0; j < kSize; ++j) v.at[j] = f(v.at[j]);
      *reinterpret_cast<Vector<T>*>(y_ + head_ + i * kSize) = v;
    }
    if (has_edge()) y_[edge()] = f(x_[edge()]);
  }

 private:
  __device__ Vector<T> load(int64_t i) const {
    const T* from = x_ + head_ + i * kSize;
    if (x_aligned_) return *reinterpret_cast<const Vector<T>*>(from);
    Vector<T> v;
#pragma unroll
    for (int j = 0; j < kSize; ++j) v.at[j] = from[j];
    return v;
  }

  // The first lanes take an edge element each: the head's, then the tail's.
  __device__ bool has_edge() const { return thread_index() < head_ + tail_; }
  __device__ int64_t edge() const {
    const int i = thread_index();
    return i < head_ ? i : vectors_ * kSize + i;
  }

  const T* x_;
  T* y_;
  int64_t vectors_;
  int head_, tail_;
  bool x_aligned_;
};

}  // namespace online_softmax
