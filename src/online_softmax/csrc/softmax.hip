// The GPU launchers: raw pointers in, an error code out. AMD's compiler takes this file as it
// is; softmax.cu hands it to NVIDIA's.
#include <hip/hip_runtime.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "block.h"
#include "dispatch.h"
#include "gang.h"
#include "launch.h"
#include "naive.h"
#include "online.h"
#include "split.h"
#include "warp.h"

namespace online_softmax {
namespace {

constexpr const auto& kBlock = kBlockShapes[kSharedMemoryIsLarge];
constexpr const auto& kGang = kGangShapes[kSharedMemoryIsLarge];
constexpr int kClearThreads = 256;

// A value that is found once for each device.
template <typename V>
class PerDevice {
 public:
  template <typename Find>
  V get(Find find) {
    int index = 0;
    (void)hipGetDevice(&index);
    index = std::min(index, kMostDevices - 1);
    std::call_once(asked_[index], [&] { known_[index] = find(index); });
    return known_[index];
  }

 private:
  static constexpr int kMostDevices = 64;
  std::array<V, kMostDevices> known_{};
  std::array<std::once_flag, kMostDevices> asked_;
};

Device current_device() {
  static PerDevice<Device> device;
  return device.get([](int index) -> Device {
    hipDeviceProp_t properties{};
    (void)hipGetDeviceProperties(&properties, index);
    return {properties.multiProcessorCount, kSharedMemoryIsLarge};
  });
}

struct Prepared {
  hipError_t error;
  bool starts_early;
};

// What a kernel needs before its first launch on a device, if it takes much shared memory.
template <auto kernel>
Prepared prepare(int64_t shared_bytes) {
  static PerDevice<Prepared> prepared;
  return prepared.get([&](int) -> Prepared {
    const auto* address = reinterpret_cast<const void*>(kernel);
    hipError_t error = hipSuccess;
    if (shared_bytes > 0) {
      error = hipFuncSetAttribute(address, hipFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared_bytes));
    }
    return {error, native_starts_early(address)};
  });
}

// HIP requires gridDim · blockDim < 2^32 in a dimension. Some kernels stride over what is left;
// others, in which a block has its place, are launched in parts.
constexpr int64_t kMostBlocks = 1 << 21;
dim3 grid(int64_t blocks) { return dim3(static_cast<unsigned>(std::min(blocks, kMostBlocks))); }

// Calls enqueue(first row, grid) until all rows, of so many blocks each, have been launched.
template <typename Enqueue>
hipError_t in_parts(int64_t rows, int blocks_a_row, Enqueue enqueue) {
  const int64_t most = std::max<int64_t>(1, kMostBlocks / blocks_a_row);
  for (int64_t first = 0; first < rows; first += most) {
    enqueue(first, dim3(static_cast<unsigned>(std::min(most, rows - first) * blocks_a_row)));
    if (const hipError_t error = hipGetLastError(); error != hipSuccess) return error;
  }
  return hipSuccess;
}

struct Launch {
  const Plan& plan;
  const Problem& problem;
  const void* x;
  void* y;
  void* workspace;
  hipStream_t stream;
};

template <typename T>
hipError_t walk(const Launch& l) {
  const auto kernel = l.plan.algorithm == Algorithm::naive ? naive_kernel<T, kWalkThreads>
                                                           : online_kernel<T, kWalkThreads>;
  hipLaunchKernelGGL(kernel, grid(l.problem.rows), dim3(kWalkThreads), 0, l.stream,
                     static_cast<const T*>(l.x), static_cast<T*>(l.y), l.problem.rows,
                     l.problem.cols);
  return hipGetLastError();
}

template <typename T, int kShape>
hipError_t warp(const Launch& l) {
  constexpr WarpShape shape = kWarpShapes[kShape];
  hipLaunchKernelGGL((warp_kernel<T, kWarpThreads, shape.lanes, shape.registers>),
                     grid(ceil_div(l.problem.rows, kWarpThreads / shape.lanes)), dim3(kWarpThreads),
                     0, l.stream, static_cast<const T*>(l.x), static_cast<T*>(l.y), l.problem.rows,
                     l.problem.cols);
  return hipGetLastError();
}

template <typename T, int kShape>
hipError_t block(const Launch& l) {
  constexpr SliceShape shape = kBlock[kShape];
  constexpr auto kernel =
      block_kernel<T, shape.threads, shape.registers, shape.shared, shape.blocks_per_unit>;
  const Prepared prepared = prepare<kernel>(shape.shared_bytes());
  if (prepared.error != hipSuccess) return prepared.error;
  const auto* x = static_cast<const T*>(l.x);
  auto* y = static_cast<T*>(l.y);
  return in_parts(l.problem.rows, 1, [&](int64_t first, dim3 blocks) {
    hipLaunchKernelGGL(kernel, blocks, dim3(shape.threads), shape.shared_bytes(), l.stream,
                       x + first * l.problem.cols, y + first * l.problem.cols, l.problem.cols);
  });
}

template <typename T>
hipError_t split(const Launch& l) {
  const dim3 blocks = grid(l.problem.rows * l.plan.ranks);
  const auto* x = static_cast<const T*>(l.x);
  auto* pairs = static_cast<Pair<float>*>(l.workspace);
  hipLaunchKernelGGL((split_reduce_kernel<T, kWalkThreads>), blocks, dim3(kWalkThreads), 0,
                     l.stream, x, static_cast<T*>(l.y), l.problem.rows, l.problem.cols,
                     l.plan.ranks, l.plan.slice_vectors, pairs);
  if (const hipError_t error = hipGetLastError(); error != hipSuccess) return error;
  hipLaunchKernelGGL((split_write_kernel<T, kWalkThreads>), blocks, dim3(kWalkThreads), 0, l.stream,
                     x, static_cast<T*>(l.y), l.problem.rows, l.problem.cols, l.plan.ranks,
                     l.plan.slice_vectors, pairs);
  return hipGetLastError();
}

template <typename T, int kShape>
hipError_t gang(const Launch& l) {
  constexpr SliceShape shape = kGang[kShape];
  constexpr auto kernel =
      gang_kernel<T, shape.threads, shape.registers, shape.shared, shape.blocks_per_unit>;
  const Prepared prepared = prepare<kernel>(shape.shared_bytes());
  if (prepared.error != hipSuccess) return prepared.error;
  auto* fallbacks = static_cast<Word*>(l.workspace);
  const int64_t words = l.plan.workspace / int64_t{sizeof(Word)};
  hipLaunchKernelGGL(gang_clear_kernel<kClearThreads>, grid(ceil_div(words, kClearThreads)),
                     dim3(kClearThreads), 0, l.stream, fallbacks, words);
  if (const hipError_t error = hipGetLastError(); error != hipSuccess) return error;
  const auto* x = static_cast<const T*>(l.x);
  auto* y = static_cast<T*>(l.y);
  return in_parts(l.problem.rows, l.plan.ranks, [&](int64_t first, dim3 blocks) {
    native_launch(prepared.starts_early, kernel, blocks, dim3(shape.threads), shape.shared_bytes(),
                  l.stream, x + first * l.problem.cols, y + first * l.problem.cols, l.problem.cols,
                  l.plan.ranks, static_cast<int>(l.plan.slice_vectors),
                  fallbacks + 1 + first * l.plan.ranks, fallbacks,
                  GangOptions{l.plan.patience, l.plan.late_every});
  });
}

// Calls the instance for a shape that is known only at run time.
template <template <int> class Instance, int... kShapes>
hipError_t for_shape(const Launch& l, std::integer_sequence<int, kShapes...>) {
  hipError_t error = hipSuccess;
  (void)((l.plan.shape == kShapes && (error = Instance<kShapes>::run(l), true)) || ...);
  return error;
}

template <typename T>
struct Of {
  template <int kShape>
  struct Warp {
    static hipError_t run(const Launch& l) { return warp<T, kShape>(l); }
  };
  template <int kShape>
  struct Block {
    static hipError_t run(const Launch& l) { return block<T, kShape>(l); }
  };
  template <int kShape>
  struct Gang {
    static hipError_t run(const Launch& l) { return gang<T, kShape>(l); }
  };
};

template <size_t N>
using Shapes = std::make_integer_sequence<int, static_cast<int>(N)>;

template <typename T>
hipError_t launch(const Launch& l) {
  switch (l.plan.algorithm) {
    case Algorithm::warp:
      return for_shape<Of<T>::template Warp>(l, Shapes<std::size(kWarpShapes)>());
    case Algorithm::block:
      return for_shape<Of<T>::template Block>(l, Shapes<std::size(kBlock)>());
    case Algorithm::gang:
      return for_shape<Of<T>::template Gang>(l, Shapes<std::size(kGang)>());
    case Algorithm::split:
      return split<T>(l);
    default:
      return walk<T>(l);
  }
}

}  // namespace

Plan plan_gpu(Algorithm algorithm, const Problem& problem) {
  return choose(algorithm, problem, current_device());
}

Plan plan_any_gang(const Problem& problem) {
  return any_gang_plan(problem, current_device(), "asked for");
}

int softmax_gpu(const Plan& plan, const Problem& problem, const void* x, void* y, void* workspace,
                void* stream) {
  const Launch l{plan, problem, x, y, workspace, static_cast<hipStream_t>(stream)};
  switch (problem.dtype) {
    case Dtype::float32:
      return launch<float>(l);
    case Dtype::float16:
      return launch<Half>(l);
    case Dtype::bfloat16:
      return launch<Bfloat16>(l);
    case Dtype::float64:
      return walk<double>(l);
  }
  return hipSuccess;
}

const char* gpu_error(int code) { return hipGetErrorString(static_cast<hipError_t>(code)); }

}  // namespace online_softmax
