// The GPU launchers: raw pointers in, an error code out. AMD compilers take this file as it
// is; softmax.cu hands it to NVIDIA's.
#include <hip/hip_runtime.h>

#include <algorithm>

#include "launch.h"
#include "naive.h"
#include "online.h"

namespace online_softmax {
namespace {

constexpr int kThreads = 512;

// HIP requires gridDim·blockDim < 2^32 in a dimension; the kernels stride over further rows.
unsigned grid(int64_t rows) { return static_cast<unsigned>(std::min<int64_t>(rows, 1 << 20)); }

}  // namespace

int softmax_gpu(Algorithm algorithm, const float* x, float* y, int64_t rows, int64_t cols,
                void* stream) {
  const auto on = static_cast<hipStream_t>(stream);
  if (algorithm == Algorithm::naive) {
    hipLaunchKernelGGL((naive_kernel<float, kThreads>), dim3(grid(rows)), dim3(kThreads), 0, on, x,
                       y, rows, cols);
  } else {
    hipLaunchKernelGGL((online_kernel<float, kThreads>), dim3(grid(rows)), dim3(kThreads), 0, on,
                       x, y, rows, cols);
  }
  return hipGetLastError();
}

const char* gpu_error(int code) { return hipGetErrorString(static_cast<hipError_t>(code)); }

}  // namespace online_softmax
