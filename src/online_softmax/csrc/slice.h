// A slice of a row, held on chip between the read and the write: what makes one read enough.
//
// `kLanes` lanes share a slice. Each holds kInRegisters vectors in registers and kInShared in
// shared memory, where only it reads them, so that no barrier is needed; and, where the slice
// includes the row's edges, its share of their elements: one of each edge at most, unless the
// lanes are very few. With kRoomy there are registers to hold addresses in, which otherwise are
// computed again for each vector (bfloat16 at 16384 x 512: 7.6 us against 8.7); gang has none and
// would spill (at 1024 x 131072: 0.93 of a copy's speed against 0.94).
#pragma once

#include <hip/hip_runtime.h>

#include "rows.h"

namespace online_softmax {

// e^(x − s) for many x and one s.
template <typename T>
struct Weights {
  Real<T> s;
  __device__ __forceinline__ explicit Weights(Real<T> shift) : s(shift) {}
  __device__ __forceinline__ Real<T> operator()(Real<T> x) const { return weight(x, s); }
};

// For 16-bit numbers, whose rows take twice the arithmetic a byte, in one fma instead of two
// operations: 2^(x·log2 e − c), where c is s·log2 e rounded. The rounding is common to numerator
// and normalizer and cancels; what is left of it where pairs of different maxima combine is far
// below half a 16-bit unit. Near the end of bfloat16's range c would overflow; there any two
// different numbers are so far apart that any slope tells their weights from 1.
struct FusedWeights {
  float slope, c;
  __device__ __forceinline__ explicit FusedWeights(float s)
      : slope(fabsf(s) < 0x1p126f ? 1.4426950408889634f : 0x1p-60f), c(s * slope) {}
  __device__ __forceinline__ float operator()(float x) const {
    return exp2_device(fmaf(x, slope, -c));
  }
};
template <>
struct Weights<Half> : FusedWeights {
  using FusedWeights::FusedWeights;
};
template <>
struct Weights<Bfloat16> : FusedWeights {
  using FusedWeights::FusedWeights;
};

template <typename T, int kLanes, int kInRegisters, int kInShared, bool kRoomy>
class Slice {
 public:
  static constexpr int kSize = Vector<T>::kSize;
  static constexpr int kVectors = kLanes * (kInRegisters + kInShared);
  static constexpr int kEdge = (kSize - 1 + kLanes - 1) / kLanes;  // elements of an edge, a lane
  using Value = Real<T>;

  // `lane` of the slice [begin, end) of the row's body, at most kVectors long, and of the edges
  // if `edges`. `shared`: kLanes · kInShared vectors.
  __device__ __forceinline__ Slice(const Row<T>& row, int64_t begin, int64_t end, bool edges,
                                   int lane, Vector<T>* shared)
      : row_(row), first_(begin + lane), lane_(lane), edges_(edges), shared_(shared + lane) {
    left_ = static_cast<int>(end - first_);
    const int rounds = static_cast<int>((end - begin + kLanes - 1) / kLanes) - kInRegisters;
    in_shared_ = rounds < 0 ? 0 : rounds < kInShared ? rounds : kInShared;
  }

  // Reads the slice. The copies to shared memory run in the background of the loads.
  __device__ __forceinline__ void load() {
    if (row_.x_aligned) {
#pragma unroll 4
      for (int k = 0; k < in_shared_; ++k) {
        Vector<T>* to = shared_ + k * kLanes;
        if (has(kInRegisters + k)) {
          native_copy_to_shared(to, row_.x_body(first_ + (kInRegisters + k) * kLanes));
        } else {
          *to = Vector<T>::minus_infinities();
        }
      }
    } else {
#pragma unroll 1
      for (int k = 0; k < in_shared_; ++k) shared_[k * kLanes] = gather(kInRegisters + k);
    }
    load_registers();
  }

  // Reads what registers hold of the slice, again if need be.
  __device__ __forceinline__ void load_registers() {
    if (row_.x_aligned) {
      const T* from = row_.x_body(first_);
      if constexpr (kRoomy) native_hold(from);
#pragma unroll
      for (int k = 0; k < kInRegisters; ++k) {
        held_[k] = has(k) ? load_vector(from + k * kLanes * kSize) : Vector<T>::minus_infinities();
      }
    } else {
#pragma unroll
      for (int k = 0; k < kInRegisters; ++k) held_[k] = gather(k);
    }
    read_edges();
  }

  // The slice's pair over the wave's lanes, or over kLanes where they are fewer.
  __device__ __forceinline__ Pair<Value> pair() {
    const auto first = [&](int k) {
      held_[k].forget_unpacked();
      return held_[k];
    };
    return pair_of<kInRegisters>(first, [&](int k) { return shared_[k * kLanes]; });
  }

  // The same pair, to the last bit, of a slice that was not loaded: read twice from memory.
  __device__ __forceinline__ Pair<Value> pair_from_memory() {
    read_edges();
    return pair_of<1>([&](int k) { return gather(k); },
                      [&](int k) { return gather(kInRegisters + k); });
  }

  // Writes the softmax of the slice, given the pair of the whole row.
  __device__ __forceinline__ void store(Pair<Value> row_pair) {
    const Weights<T> weigh(shift(row_pair.m));
    const Value scale = 1 / row_pair.d;
    const auto result = [&](const Vector<T>& v) {
      Value values[kSize];
      v.unpack(values);
#pragma unroll
      for (Value& value : values) value = weigh(value) * scale;
      return Vector<T>::pack(values);
    };
    T* to = row_.y_body(first_);
    if constexpr (kRoomy) native_hold(to);
#pragma unroll 2
    for (int k = 0; k < in_shared_; ++k) {
      if (has(kInRegisters + k)) {
        store_vector(to + (kInRegisters + k) * kLanes * kSize, result(shared_[k * kLanes]));
      }
    }
#pragma unroll
    for (int k = 0; k < kInRegisters; ++k) {
      held_[k].forget_unpacked();
      if (has(k)) store_vector(to + k * kLanes * kSize, result(held_[k]));
    }
    if (!edges_ || !row_.has_edges()) return;
#pragma unroll
    for (int e = 0; e < kEdge; ++e) {
      const int at = lane_ + e * kLanes;
      if (at < row_.head) row_.y[at] = from_real<T>(weigh(head_[e]) * scale);
      if (at < row_.tail) row_.y_tail()[at] = from_real<T>(weigh(tail_[e]) * scale);
    }
  }

 private:
  __device__ __forceinline__ bool has(int k) const { return k * kLanes < left_; }

  // The k-th vector of this lane, by whatever accesses its alignment allows.
  __device__ __forceinline__ Vector<T> gather(int k) const {
    return has(k) ? row_.load(row_.x_body(first_ + k * kLanes)) : Vector<T>::minus_infinities();
  }

  __device__ __forceinline__ void read_edges() {
#pragma unroll
    for (int e = 0; e < kEdge; ++e) head_[e] = tail_[e] = -Value(INFINITY);
    if (kRoomy && !(edges_ && row_.has_edges())) return;
#pragma unroll
    for (int e = 0; e < kEdge; ++e) {
      const int at = lane_ + e * kLanes;
      if (edges_ && at < row_.head) head_[e] = to_real(row_.x[at]);
      if (edges_ && at < row_.tail) tail_[e] = to_real(row_.x_tail()[at]);
    }
  }

  // Maximum first, then the sum against it: on chip a second look is free, and it saves the
  // rescaling. One order of operations and no contractible product, so that every caller gets
  // the same bits. kUnroll: registers need constant indices, and so the whole loop; memory does
  // not, and the rare path should take no registers from the common one.
  template <int kUnroll, typename First, typename Second>
  __device__ __forceinline__ Pair<Value> pair_of(First first, Second second) const {
    constexpr int kWidth = kLanes < kWave ? kLanes : kWave;
    constexpr int kUnrollShared = kUnroll == 1 ? 1 : 2;
    if constexpr (kInShared > 0) native_wait_for_copies();
    Value m = -Value(INFINITY);
#pragma unroll
    for (int e = 0; e < kEdge; ++e) m = fmax(m, fmax(head_[e], tail_[e]));
#pragma unroll kUnroll
    for (int k = 0; k < kInRegisters; ++k) m = fmax(m, first(k).largest());
#pragma unroll kUnrollShared
    for (int k = 0; k < in_shared_; ++k) m = fmax(m, second(k).largest());
    m = reduce<kWidth>(m, Larger());

    const Weights<T> weigh(shift(m));
    Value d = 0;
    if (edges_ && row_.has_edges()) {
#pragma unroll
      for (int e = 0; e < kEdge; ++e) d += weigh(head_[e]) + weigh(tail_[e]);
    }
    const auto add = [&](const Vector<T>& v) {
      Value values[kSize];
      v.unpack(values);
      Value even = weigh(values[0]), odd = weigh(values[1]);
#pragma unroll
      for (int i = 2; i < kSize; i += 2) {
        even += weigh(values[i]);
        odd += weigh(values[i + 1]);
      }
      d += even + odd;
    };
    // Keeps the compiler from holding on to what it read from shared memory above.
    asm volatile("" ::: "memory");
#pragma unroll kUnroll
    for (int k = 0; k < kInRegisters; ++k) add(first(k));
#pragma unroll kUnrollShared
    for (int k = 0; k < in_shared_; ++k) add(second(k));
    return {m, reduce<kWidth>(d, Sum())};
  }

  const Row<T> row_;
  const int64_t first_;  // this lane's first vector
  const int lane_;
  const bool edges_;
  int left_;       // vectors from first_ to the slice's end
  int in_shared_;  // of kInShared, as many as any lane needs
  Vector<T>* const shared_;
  Vector<T> held_[kInRegisters];
  Value head_[kEdge], tail_[kEdge];
};

}  // namespace online_softmax
