// A row in memory: 16 bytes a lane at a time, whatever the row's length and address.
//
// Any row is an aligned body of whole vectors between two edges of fewer than kSize elements.
// The body takes 16-byte accesses; the edges go to one lane an element. So an odd column count
// costs two predicated scalars a lane, never a scalar loop. Where x and y disagree in alignment
// (one of them is a slice), y keeps its 16-byte stores and x is read by element: a cache line
// is fetched once either way.
#pragma once

#include <hip/hip_runtime.h>

#include "gpu.h"

namespace online_softmax {

template <typename T>
struct Row {
  static constexpr int kSize = Vector<T>::kSize;

  const T* x;  // the row's first element
  T* y;
  int64_t cols;
  int64_t vectors;  // of the body
  int head, tail;   // elements before and after it
  bool x_aligned;   // the body of x is on the vector boundary, as that of y is

  // Row `index` of the contiguous matrices x and y.
  __device__ __forceinline__ Row(const T* x_matrix, T* y_matrix, int64_t index, int64_t columns)
      : x(x_matrix + index * columns), y(y_matrix + index * columns), cols(columns) {
    const int past = static_cast<int>(reinterpret_cast<uintptr_t>(y) / sizeof(T) % kSize);
    const int before = past == 0 ? 0 : kSize - past;
    head = static_cast<int>(before < cols ? before : cols);
    vectors = (cols - head) / kSize;
    tail = static_cast<int>(cols - head - vectors * kSize);
    x_aligned = reinterpret_cast<uintptr_t>(x + head) % sizeof(Vector<T>) == 0;
  }

  __device__ __forceinline__ bool has_edges() const { return head + tail > 0; }
  __device__ __forceinline__ const T* x_body(int64_t vector) const {
    return x + head + vector * kSize;
  }
  __device__ __forceinline__ T* y_body(int64_t vector) const { return y + head + vector * kSize; }
  __device__ __forceinline__ const T* x_tail() const { return x + cols - tail; }
  __device__ __forceinline__ T* y_tail() const { return y + cols - tail; }

  __device__ __forceinline__ Vector<T> load(const T* from) const {
    if (x_aligned) return load_vector(from);
    T numbers[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) numbers[i] = from[i];
    return bit_cast<Vector<T>>(numbers);
  }

  // Calls see(const Real (&values)[N]) until the block's threads have seen, together, the
  // body's vectors [begin, end) and, with `edges`, the edges.
  template <typename See>
  __device__ __forceinline__ void each(int64_t begin, int64_t end, bool edges, See see) const {
    constexpr int kUnroll = sizeof(T) == 8 ? 2 : 4;
#pragma unroll kUnroll
    for (int64_t i = begin + thread_index(); i < end; i += blockDim.x) {
      Real<T> values[kSize];
      load(x_body(i)).unpack(values);
      see(values);
    }
    if (edges && thread_index() < head) {
      const Real<T> value[1] = {to_real(x[thread_index()])};
      see(value);
    }
    if (edges && thread_index() < tail) {
      const Real<T> value[1] = {to_real(x_tail()[thread_index()])};
      see(value);
    }
  }

  // y = f(x), element by element, over the same part.
  template <typename F>
  __device__ __forceinline__ void map(int64_t begin, int64_t end, bool edges, F f) const {
#pragma unroll 2
    for (int64_t i = begin + thread_index(); i < end; i += blockDim.x) {
      Real<T> values[kSize];
      load(x_body(i)).unpack(values);
#pragma unroll
      for (Real<T>& value : values) value = f(value);
      store_vector(y_body(i), Vector<T>::pack(values));
    }
    if (edges && thread_index() < head) {
      y[thread_index()] = from_real<T>(f(to_real(x[thread_index()])));
    }
    if (edges && thread_index() < tail) {
      y_tail()[thread_index()] = from_real<T>(f(to_real(x_tail()[thread_index()])));
    }
  }
};

}  // namespace online_softmax
