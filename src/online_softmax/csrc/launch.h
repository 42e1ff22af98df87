// What ops.cpp calls: raw pointers in, no torch and no GPU header.
//
// Every function takes a contiguous matrix of `rows` rows of `cols` elements and
// writes the softmax of each row to `y`, which has the same layout. Both sizes
// are at least 1. `y` may be `x` itself; it may not overlap it in any other way.
#pragma once

#include <cstdint>

namespace online_softmax {

enum class Algorithm : int { automatic, naive, online, block };

// CPU (cpu.cpp). Serves naive, online and block; automatic takes one of them.
void softmax_cpu(Algorithm algorithm, const float* x, float* y, int64_t rows, int64_t cols);

// GPU (softmax.hip), enqueued on `stream` of the current device. Serves naive and
// online; automatic takes one of them. Returns 0, or the runtime's error code.
int softmax_gpu(Algorithm algorithm, const float* x, float* y, int64_t rows, int64_t cols,
                void* stream);
const char* gpu_error(int code);

}  // namespace online_softmax
