// From a problem to a rung and its launch shape, as tables to read. Host code without a GPU
// header: what `auto` takes on a device can be asked on any machine.
//
// Rows are measured in 16-byte vectors: 4 columns of float32, 8 of float16 and bfloat16, 2 of
// float64. The limits were measured on an H200, as fractions of the speed of a copy; where a
// reason speaks of AMD it is reasoned from the size of the register file.
#pragma once

#include <algorithm>
#include <cstdint>

#include "launch.h"

namespace online_softmax {

struct Device {
  int units;             // CUs or SMs
  bool shared_is_large;  // gang may hold half of a slice in shared memory
};

// ---------------------------------------------------------------------- launch shapes

struct WarpShape {
  int lanes, registers;
  constexpr int64_t vectors() const { return lanes * registers; }
};
// As few lanes a row as its vectors allow, so that a wave has many rows' loads in flight; then
// whole waves.
constexpr int kWarpThreads = 128;
constexpr WarpShape kWarpShapes[] = {{1, 1}, {2, 1},  {4, 1},  {8, 1}, {8, 2},
                                     {8, 4}, {32, 2}, {32, 4}, {32, 8}};

struct BlockShape {
  int threads, registers, blocks_per_unit;
  constexpr int64_t vectors() const { return int64_t{threads} * registers; }
};
// Small blocks while they hold the row, so that many are on a unit in different phases. One
// block of 1024 threads alone on a unit, the next step, loses to a gang (bfloat16 at 50257
// columns: 0.81 against 0.87).
constexpr BlockShape kBlockShapes[] = {
    {128, 2, 16}, {128, 4, 8}, {256, 4, 6}, {256, 8, 4}, {1024, 4, 2}};

struct GangShape {
  int threads, registers, shared, blocks_per_unit;
  constexpr int64_t vectors() const { return int64_t{threads} * (registers + shared); }
  constexpr int64_t shared_bytes() const { return int64_t{threads} * shared * 16; }
};
// Long rows take slices of the same size in twice as many, smaller blocks, half of each in
// shared memory: as much on chip again, so that more rows are in flight while some wait. AMD has
// little shared memory and large register files, and takes larger slices in registers instead.
constexpr GangShape kGangShapes[2][2] = {
    {{256, 8, 0, 4}, {256, 16, 0, 2}},  // registers only
    {{256, 8, 0, 4}, {128, 8, 8, 8}},   // half in shared memory
};

constexpr int kWalkThreads = 512;  // naive, online and split: they hold nothing

// ------------------------------------------------------------------------- the choice

constexpr int64_t kLongestWarpRow = 256;    // vectors
constexpr int64_t kLongestBlockRow = 4096;  // vectors
// Slices in registers reach 0.90 to 0.97 up to here and 0.72 at two million columns; with
// shared memory 0.89 to 0.95 and 0.85.
constexpr int64_t kLongestRegisterGang = 131072;  // columns
constexpr int64_t kSmallestSlice = 256;  // vectors: below this a block has too little to do

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline int64_t element_bytes(Dtype dtype) {
  return dtype == Dtype::float64 ? 8 : dtype == Dtype::float32 ? 4 : 2;
}

inline int64_t row_vectors(const Problem& p) { return p.cols * element_bytes(p.dtype) / 16; }

// The first shape that holds a row, or -1.
template <typename Shapes>
int holding_shape(const Shapes& shapes, int64_t vectors) {
  int index = 0;
  for (const auto& shape : shapes) {
    if (vectors <= shape.vectors()) return index;
    ++index;
  }
  return -1;
}

inline Plan walk(Algorithm algorithm, const char* reason) {
  return {algorithm, reason, 0, 1, 0, 0};
}

inline Plan refused(const char* what_it_serves) {
  return {Algorithm::automatic, what_it_serves, 0, 0, 0, 0};
}

inline Plan warp_plan(const Problem& p, const char* reason) {
  // Edges of 16-bit rows have up to 7 elements, which few lanes take one after the other: where
  // there are any, twice the lanes (bfloat16 at 10 columns: 0.60 against 0.44).
  const bool long_edges = element_bytes(p.dtype) == 2 && p.cols % 8 != 0;
  const int64_t vectors = row_vectors(p);
  const int shape = holding_shape(kWarpShapes, long_edges && vectors <= 4 ? 2 * vectors : vectors);
  if (shape < 0 || p.dtype == Dtype::float64) {
    return refused("warp serves rows of up to 4096 bytes in float32, float16 and bfloat16");
  }
  return {Algorithm::warp, reason, shape, 1, 0, 0};
}

inline Plan block_plan(const Problem& p, const char* reason) {
  const int shape = holding_shape(kBlockShapes, row_vectors(p));
  if (shape < 0 || p.dtype == Dtype::float64) {
    return refused("block serves rows of up to 65536 bytes in float32, float16 and bfloat16");
  }
  return {Algorithm::block, reason, shape, 1, 0, 0};
}

inline Plan split_plan(const Problem& p, const Device& device, const char* reason) {
  if (p.dtype == Dtype::float64) {
    return refused("split serves float32, float16 and bfloat16");
  }
  const int64_t vectors = row_vectors(p);
  const int64_t wanted = std::max<int64_t>(1, ceil_div(4 * device.units, p.rows));
  const int64_t ranks = std::max<int64_t>(1, std::min(wanted, vectors / kSmallestSlice));
  return {Algorithm::split,  reason, 0, static_cast<int>(ranks), ceil_div(vectors, ranks),
          p.rows * ranks * 8};
}

// A gang without a look at whether the device can hold it.
inline Plan any_gang_plan(const Problem& p, const Device& device, const char* reason) {
  const int shape = p.cols <= kLongestRegisterGang ? 0 : 1;
  const int64_t vectors = std::max<int64_t>(1, row_vectors(p));
  // At least as many blocks as the row needs; for few rows, more, until every unit has one.
  const int64_t needed = ceil_div(vectors, kGangShapes[device.shared_is_large][shape].vectors());
  const int64_t spread = std::min(device.units / p.rows, vectors / kSmallestSlice);
  const int64_t ranks = std::max(needed, spread);
  return {Algorithm::gang,         reason, shape, static_cast<int>(ranks), ceil_div(vectors, ranks),
          (p.rows * ranks + 1) * 8};
}

inline Plan gang_plan(const Problem& p, const Device& device, const char* reason) {
  if (p.dtype == Dtype::float64 || p.in_place) {
    return refused("gang serves float32, float16 and bfloat16 with an output apart from the input");
  }
  const Plan plan = any_gang_plan(p, device, reason);
  const GangShape& shape = kGangShapes[device.shared_is_large][plan.shape];
  if (plan.ranks > device.units * shape.blocks_per_unit / 2) {
    return refused("gang serves rows of which the device holds two at once");
  }
  return plan;
}

// What a request for `algorithm` becomes.
inline Plan choose(Algorithm algorithm, const Problem& p, const Device& device) {
  const char* asked = "asked for";
  switch (algorithm) {
    case Algorithm::naive:
    case Algorithm::online:
      return walk(algorithm, asked);
    case Algorithm::warp:
      return warp_plan(p, asked);
    case Algorithm::block:
      return block_plan(p, asked);
    case Algorithm::split:
      return split_plan(p, device, asked);
    case Algorithm::gang:
      return gang_plan(p, device, asked);
    case Algorithm::automatic:
      break;
  }

  const int64_t vectors = row_vectors(p);
  // Waves of few rows leave units idle; a block a row brings more lanes to each (bfloat16 at
  // 256 x 2048: 0.82 against 0.79).
  const bool few_rows = p.rows < 2 * device.units;
  if (p.dtype == Dtype::float64) return walk(Algorithm::online, "float64 is served by online");
  if (vectors <= kLongestWarpRow && !(few_rows && vectors > kLongestWarpRow / 2)) {
    return warp_plan(p, "a wave or less holds the row");
  }
  if (vectors <= kLongestBlockRow) {
    return block_plan(p, "a block holds the row in registers");
  }
  const Plan gang = gang_plan(p, device, "blocks hold the row together");
  if (gang.algorithm == Algorithm::gang) return gang;
  if (p.rows < 4 * device.units) {
    return split_plan(p, device, "too long to hold, or in place: blocks share each row");
  }
  return walk(Algorithm::online, "in place, and rows enough to fill the device");
}

}  // namespace online_softmax
