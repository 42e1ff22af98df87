// The normalizer pair: online softmax in one structure.
//
// softmax(x)_i = e^(x_i − m) / d,  with m = max x_j and d = Σ e^(x_j − m).
//
// A pair (m, d) is those two numbers for a part of a row. Two rules make it enough to
// look at each element once (Milakov & Gimelshein 2018, arXiv:1805.02867, algorithm 3):
//
//   update   add an element:   m' = max(m, x),      d' = d·e^(m − m') + e^(x − m')
//   combine  join two parts:   m  = max(m_a, m_b),  d  = d_a·e^(m_a − m) + d_b·e^(m_b − m)
//
// combine is associative and commutative and (−∞, 0) is its identity, so any tree of
// lanes, waves and blocks may reduce a row. An element x is the pair (x, 1).
//
// All of this holds with −∞ among the elements (a masked row) if one difference is guarded:
// −∞ − (−∞) is NaN where e^(…) should be 0. `shift` is that guard.
#pragma once

#include <cmath>

// gpu.h sets both for kernels; a host compiler takes these.
#ifndef ONLINE_SOFTMAX_FUNCTION
#define ONLINE_SOFTMAX_FUNCTION inline
#define ONLINE_SOFTMAX_EXP2 std::exp2
#endif

namespace online_softmax {

template <typename Real>
struct Pair {
  Real m;  // the maximum so far
  Real d;  // the normalizer so far, Σ e^(x − m)

  ONLINE_SOFTMAX_FUNCTION static Pair identity() { return {-Real(INFINITY), Real(0)}; }
};

// What to subtract before exponentiating: m, or 0 while every element has been −∞.
template <typename Real>
ONLINE_SOFTMAX_FUNCTION Real shift(Real m) {
  return m == -Real(INFINITY) ? Real(0) : m;
}

// e^(x − s), as 2^((x − s)·log2 e): GPUs have an instruction for 2^x. Subtracting first
// matters: x·log2 e − s·log2 e loses a digit to cancellation once |x| is some tens.
template <typename Real>
ONLINE_SOFTMAX_FUNCTION Real weight(Real x, Real s) {
  return ONLINE_SOFTMAX_EXP2((x - s) * Real(1.4426950408889634));
}

// Adds N elements at once: one rescale of d pays for all of them.
template <int N, typename Real>
ONLINE_SOFTMAX_FUNCTION Pair<Real> update(Pair<Real> p, const Real (&x)[N]) {
  Real m = p.m;
  for (int i = 0; i < N; ++i) m = fmax(m, x[i]);
  const Real s = shift(m);
  Real d = p.d * weight(p.m, s);
  for (int i = 0; i < N; ++i) d += weight(x[i], s);
  return {m, d};
}

// Selecting the larger side instead of branching costs one exponential, not two, and no
// divergence; fma makes combine(a, b) and combine(b, a) the same bits, so that all lanes
// of a butterfly reduction agree.
template <typename Real>
ONLINE_SOFTMAX_FUNCTION Pair<Real> combine(Pair<Real> a, Pair<Real> b) {
  const bool a_is_larger = a.m >= b.m;
  const Pair<Real> high = a_is_larger ? a : b;
  const Pair<Real> low = a_is_larger ? b : a;
  return {high.m, std::fma(low.d, weight(low.m, shift(high.m)), high.d)};
}

}  // namespace online_softmax
