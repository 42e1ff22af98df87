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
constexpr WarpShape kWarpShapes[] = {{1, 1}, {2, 1}, {4, 1}, {8, 1}, {8, 2}, {16, 2}, {32, 2}};

// A slice of a row and the block that holds it, `registers` and `shared` vectors a lane.
struct SliceShape {
  int threads, registers, shared, blocks_per_unit;
  constexpr int64_t vectors() const { return int64_t{threads} * (registers + shared); }
  constexpr int64_t shared_bytes() const { return int64_t{threads} * shared * 16; }
};

// Two tables each: AMD has little shared memory and large register files; NVIDIA holds half of the
// larger slices in shared memory, and so as much on chip again.
//
// block: small blocks while they hold the row, so that many are on a unit in different phases, and
// three vectors a lane before four, so that few lanes idle (bfloat16 at 2400, 4800, 9600 columns:
// 1.02, 1.01, 1.02 against 0.98, 0.95, 0.98). Rows just too long for 512 lanes of four do badly in
// 1024 (bfloat16 at 18400 columns: 1.00 against 0.89), as do the longest, of which two are on a
// unit (at 50257 columns: 0.95 against 0.85).
// clang-format off
constexpr SliceShape kBlockShapes[2][11] = {
    {{64, 2, 0, 32}, {64, 4, 0, 32}, {128, 3, 0, 16}, {128, 4, 0, 12}, {256, 3, 0, 8},
     {256, 4, 0, 6}, {512, 3, 0, 4}, {512, 4, 0, 4}, {512, 5, 0, 3}, {1024, 4, 0, 2},
     {1024, 8, 0, 1}},
    {{64, 2, 0, 32}, {64, 4, 0, 32}, {128, 3, 0, 16}, {128, 4, 0, 12}, {256, 3, 0, 8},
     {256, 4, 0, 6}, {512, 3, 0, 4}, {512, 4, 0, 4}, {512, 4, 1, 3}, {1024, 4, 0, 2},
     {512, 8, 8, 2}}};
// clang-format on

// gang: the first two for few rows, whose blocks are all on the device at once: a slice in
// registers where it needs more than four vectors a lane, else the second. Of wide rows the second,
// most bytes on a unit in small slices; larger slices for long rows, since each rank more to meet
// is one more that can be late. As fractions of a copy, float32 / bfloat16, by the bytes of a row
// (of 256 rows of 8 MB the fourth holds .91, and the third .90):
//              256 KiB    512 KiB    800 KB     1.6 MB     4 MB       8 MB       16 MB
//   the second .96 / .95  .97 / .94  .98 / .94  .93 / .85  .87 / -    .76 / -
//   the third  .95 / .93  .95 / .93  .95 / .91  .96 / .90  .92 / .87  .90 / .83  .75 / .73
//   the fourth                                             .89 / .83  .89 / .83  .82 / .75
constexpr SliceShape kGangShapes[2][4] = {
    {{256, 8, 0, 4}, {256, 8, 0, 4}, {256, 16, 0, 4}, {512, 16, 0, 2}},
    {{256, 8, 0, 4}, {256, 4, 4, 6}, {256, 8, 8, 4}, {1024, 8, 8, 1}}};
constexpr int64_t kLongestWideRow = 65536, kLongestLongRow = 393216;  // vectors

constexpr int kWalkThreads = 512;  // naive, online and split: they hold nothing

// ------------------------------------------------------------------------- the choice

constexpr int64_t kLongestWarpRow = 64;     // vectors
constexpr int64_t kLongestBlockRow = 8192;  // vectors
constexpr int64_t kSmallestSlice = 256;     // vectors: below this a block has too little to do

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
    return refused("warp serves rows of up to 1024 bytes in float32, float16 and bfloat16");
  }
  return {Algorithm::warp, reason, shape, 1, 0, 0};
}

inline Plan block_plan(const Problem& p, const Device& device, const char* reason) {
  const int shape = holding_shape(kBlockShapes[device.shared_is_large], row_vectors(p));
  if (shape < 0 || p.dtype == Dtype::float64) {
    return refused("block serves rows of up to 131072 bytes in float32, float16 and bfloat16");
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

// Of a row of which the device can hold two at once.
inline int64_t most_ranks(const Device& device, const SliceShape& shape) {
  return device.units * shape.blocks_per_unit / 2;
}

// A gang without a look at whether the device can hold it.
inline Plan any_gang_plan(const Problem& p, const Device& device, const char* reason) {
  const auto& shapes = kGangShapes[device.shared_is_large];
  const int64_t vectors = std::max<int64_t>(1, row_vectors(p));
  const auto needed = [&](int shape) { return ceil_div(vectors, shapes[shape].vectors()); };
  const auto plan = [&](int shape, int64_t ranks) -> Plan {
    return {
        Algorithm::gang,         reason, shape, static_cast<int>(ranks), ceil_div(vectors, ranks),
        (p.rows * ranks + 1) * 8};
  };

  // Few rows: more blocks than the row needs, until every unit has one, or two while that makes few
  // ranks to meet (bfloat16 at 8 x 151936: 4.7 us against 4.9; at 1 x 1048576: 6.3 against 5.2).
  const int64_t spread =
      std::max(device.units / p.rows, std::min<int64_t>(2 * device.units / p.rows, 32));
  const int64_t few = std::max(
      needed(0), std::min({spread, vectors / kSmallestSlice, most_ranks(device, shapes[0])}));
  if (p.rows * few <= most_ranks(device, shapes[0])) {
    const int64_t slice = ceil_div(vectors, few);
    return plan(slice <= shapes[0].vectors() / 2 ? 1 : 0, few);
  }
  const int shape = vectors <= kLongestWideRow ? 1 : vectors <= kLongestLongRow ? 2 : 3;
  return plan(shape, needed(shape));
}

inline Plan gang_plan(const Problem& p, const Device& device, const char* reason) {
  if (p.dtype == Dtype::float64 || p.in_place) {
    return refused("gang serves float32, float16 and bfloat16 with an output apart from the input");
  }
  const Plan plan = any_gang_plan(p, device, reason);
  if (plan.ranks > most_ranks(device, kGangShapes[device.shared_is_large][plan.shape])) {
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
      return block_plan(p, device, asked);
    case Algorithm::split:
      return split_plan(p, device, asked);
    case Algorithm::gang:
      return gang_plan(p, device, asked);
    case Algorithm::automatic:
      break;
  }

  const int64_t vectors = row_vectors(p);
  if (p.dtype == Dtype::float64) return walk(Algorithm::online, "float64 is served by online");
  if (vectors <= kLongestWarpRow) return warp_plan(p, "a wave or less holds the row");
  // A block is alone with its row: where rows are so few that most units would have none, longer
  // ones are better shared.
  const bool block_is_slow = p.rows <= device.units / 2 && vectors > kLongestBlockRow / 2;
  if (vectors <= kLongestBlockRow && (p.in_place || !block_is_slow)) {
    return block_plan(p, device, "a block holds the row");
  }
  const Plan gang = gang_plan(p, device, "blocks hold the row together");
  if (gang.algorithm == Algorithm::gang) return gang;
  if (p.rows < 4 * device.units) {
    return split_plan(p, device, "too long to hold, or in place: blocks share each row");
  }
  return walk(Algorithm::online, "in place, and rows enough to fill the device");
}

}  // namespace online_softmax
