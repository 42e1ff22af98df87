// What ops.cpp calls: raw pointers in, no torch and no GPU header.
//
// Every function takes a contiguous matrix of `rows` rows of `cols` elements and writes the
// softmax of each row to `y`, which has the same layout. Both sizes are at least 1. `y` may be
// `x` itself; it may not overlap it in any other way.
#pragma once

#include <cstdint>

namespace online_softmax {

enum class Algorithm : int { automatic, naive, online, warp, block, split, gang };
enum class Dtype : int { float32, float16, bfloat16, float64 };

// CPU (cpu.cpp). Serves naive, online and block; automatic takes one of them.
void softmax_cpu(Algorithm algorithm, const float* x, float* y, int64_t rows, int64_t cols);

// A matrix to work on, as the dispatch sees it.
struct Problem {
  int64_t rows, cols;
  Dtype dtype;
  bool in_place;  // y is x
};

// How a GPU does it: a rung, the launch shape within the rung, and the memory it borrows.
struct Plan {
  Algorithm algorithm;    // automatic: the rung asked for cannot serve the problem
  const char* reason;     // why this rung; or what the one asked for can serve
  int shape;              // index into the rung's table in dispatch.h
  int ranks;              // blocks a row
  int64_t slice_vectors;  // 16-byte vectors of a row a block
  int64_t workspace;      // bytes

  // gang only. Some milliseconds of polling before a block helps: far beyond any wait in
  // ordinary running.
  int patience = 4096;
  int late_every = 0;  // for tests: every so many blocks dawdle before they publish
};

// GPU (softmax.hip), on the current device.
Plan plan_gpu(Algorithm algorithm, const Problem& problem);

// For tests: a gang whatever its size, even one that the device cannot hold at once.
Plan plan_any_gang(const Problem& problem);

// Enqueues the plan on `stream`. Returns 0, or the runtime's error code.
int softmax_gpu(const Plan& plan, const Problem& problem, const void* x, void* y, void* workspace,
                void* stream);
const char* gpu_error(int code);

}  // namespace online_softmax
