// The operator as torch sees it: schema, checks, autograd, device and stream. No GPU header:
// c10's virtual guards reach CUDA and ROCm alike, so this file is the same on every backend.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <array>
#include <string>

#include "dispatch.h"
#include "launch.h"

namespace online_softmax {
namespace {

using at::Tensor;
using OptionalType = std::optional<at::ScalarType>;

struct Name {
  const char* text;
  Algorithm algorithm;
};

// What each device serves, in the order of the ladder.
constexpr std::array kCpuAlgorithms{
    Name{"auto", Algorithm::automatic}, Name{"naive", Algorithm::naive},
    Name{"online", Algorithm::online}, Name{"block", Algorithm::block}};
constexpr std::array kGpuAlgorithms{
    Name{"auto", Algorithm::automatic}, Name{"naive", Algorithm::naive},
    Name{"online", Algorithm::online},  Name{"warp", Algorithm::warp},
    Name{"block", Algorithm::block},    Name{"split", Algorithm::split},
    Name{"gang", Algorithm::gang}};

template <size_t N>
std::string join(const std::array<Name, N>& names) {
  std::string text;
  for (const Name& name : names) text += (text.empty() ? "" : ", ") + std::string(name.text);
  return text;
}

template <size_t N>
Algorithm parse(std::string_view text, const std::array<Name, N>& names, c10::DeviceType device) {
  for (const Name& name : names) {
    if (text == name.text) return name.algorithm;
  }
  TORCH_CHECK_VALUE(false, "online_softmax: algorithm='", text, "' is not available on ",
                    c10::DeviceTypeName(device, /*lower_case=*/true), "; accepted: ", join(names));
}

const char* name_of(Algorithm algorithm) {
  for (const Name& name : kGpuAlgorithms) {
    if (name.algorithm == algorithm) return name.text;
  }
  return "none";
}

std::string algorithms(std::string_view device) {
  if (device == "cpu") return join(kCpuAlgorithms);
  if (device == "cuda") return join(kGpuAlgorithms);
  TORCH_CHECK_VALUE(false, "online_softmax: device='", device, "'; accepted: cpu, cuda (a ROCm ",
                    "torch calls its GPUs cuda too)");
}

std::optional<Dtype> served_dtype(const c10::Device& device, at::ScalarType type) {
  if (type == at::kFloat) return Dtype::float32;
  if (device.is_cpu()) return std::nullopt;
  if (type == at::kHalf) return Dtype::float16;
  if (type == at::kBFloat16) return Dtype::bfloat16;
  if (type == at::kDouble) return Dtype::float64;
  return std::nullopt;
}

// The tensor to work on: of the dtype asked for, checked, contiguous.
Tensor checked_input(const Tensor& self, int64_t dim, OptionalType dtype) {
  TORCH_CHECK_TYPE(self.layout() == at::kStrided, "online_softmax: layout ", self.layout(),
                   "; accepted: torch.strided");
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim(), /*wrap_scalar=*/true);
  TORCH_CHECK_VALUE(self.dim() == 0 || wrapped == self.dim() - 1,
                    "online_softmax: dim=", std::to_string(dim), " of a ",
                    std::to_string(self.dim()), "-D tensor; accepted: the last dimension, -1");
  const at::ScalarType type = dtype.value_or(self.scalar_type());
  TORCH_CHECK_TYPE(served_dtype(self.device(), type), "online_softmax: dtype ", type, " on ",
                   self.device(),
                   "; accepted: ", self.is_cpu() ? "Float" : "Float, Half, BFloat16, Double");
  return self.to(type).contiguous();
}

struct Matrix {
  int64_t cols, rows;

  explicit Matrix(const Tensor& x)
      : cols(x.dim() == 0 ? 1 : x.size(-1)), rows(cols == 0 ? 0 : x.numel() / cols) {}

  std::string text() const { return std::to_string(rows) + " x " + std::to_string(cols); }
};

void run_cpu(const Tensor& x, Tensor& y, std::string_view algorithm) {
  const Algorithm chosen = parse(algorithm, kCpuAlgorithms, at::kCPU);
  const Matrix size(x);
  if (x.numel() == 0) return;
  softmax_cpu(chosen, x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), size.rows, size.cols);
}

#ifdef ONLINE_SOFTMAX_GPU
Problem describe(const Tensor& x, const Tensor& y) {
  const Matrix size(x);
  return {size.rows, size.cols, *served_dtype(x.device(), x.scalar_type()),
          x.const_data_ptr() == y.const_data_ptr()};
}

// Runs the plan on the current stream; returns the memory that it borrowed.
Tensor enqueue(const Plan& plan, const Problem& problem, const Tensor& x, Tensor& y) {
  Tensor workspace;
  if (plan.workspace > 0) workspace = at::empty({plan.workspace}, x.options().dtype(at::kByte));
  const c10::impl::VirtualGuardImpl device(x.device().type());
  const int error = softmax_gpu(plan, problem, x.const_data_ptr(), y.mutable_data_ptr(),
                                workspace.defined() ? workspace.mutable_data_ptr() : nullptr,
                                device.getStream(x.device()).native_handle());
  TORCH_CHECK(error == 0, "online_softmax: the launch for ", Matrix(x).text(),
              " failed: ", gpu_error(error));
  return workspace;
}

void run_gpu(const Tensor& x, Tensor& y, std::string_view algorithm) {
  const Algorithm asked = parse(algorithm, kGpuAlgorithms, at::kCUDA);
  if (x.numel() == 0) return;
  const c10::DeviceGuard guard(x.device());
  const Problem problem = describe(x, y);
  const Plan plan = plan_gpu(asked, problem);
  TORCH_CHECK_VALUE(plan.algorithm != Algorithm::automatic, "online_softmax: algorithm='",
                    algorithm, "' cannot serve ", Matrix(x).text(), " of ", x.scalar_type(), "; ",
                    plan.reason);
  enqueue(plan, problem, x, y);
}

// gang with its patience and its stragglers set, and the number of slices that were helped.
std::tuple<Tensor, Tensor> gang_trial(const Tensor& x, int64_t patience, int64_t late_every) {
  const c10::DeviceGuard guard(x.device());
  Tensor y = at::empty(x.sizes(), x.options());
  const Problem problem = describe(x, y);
  Plan plan = plan_any_gang(problem);
  plan.patience = static_cast<int>(patience);
  plan.late_every = static_cast<int>(late_every);
  return {y, enqueue(plan, problem, x, y).narrow(0, 0, sizeof(int64_t)).view(at::kLong)};
}

std::string explain_gpu(const Tensor& self, int64_t dim) {
  const Tensor x = checked_input(self, dim, std::nullopt);
  if (x.numel() == 0) return "none: the tensor is empty";
  const c10::DeviceGuard guard(x.device());
  Problem problem = describe(x, x);
  problem.in_place = false;
  const Plan plan = plan_gpu(Algorithm::automatic, problem);
  return std::string(name_of(plan.algorithm)) + ": " + plan.reason + " (" + Matrix(x).text() +
         ", blocks a row: " + std::to_string(plan.ranks) + ")";
}
#endif

// What `auto` takes on a GPU that need not be here, and how many blocks share a row.
std::tuple<std::string, int64_t> planned(int64_t rows, int64_t cols, at::ScalarType type,
                                         int64_t units, bool shared_is_large) {
  TORCH_CHECK_VALUE(rows > 0 && cols > 0 && units > 0, "online_softmax: rows, cols and units are ",
                    rows, ", ", cols, " and ", units, "; accepted: positive numbers");
  const auto dtype = served_dtype(c10::Device(c10::kCUDA, 0), type);
  TORCH_CHECK_TYPE(dtype, "online_softmax: dtype ", type,
                   "; accepted on GPUs: float32, float16, bfloat16, float64");
  const Plan plan = choose(Algorithm::automatic, {rows, cols, *dtype, false},
                           {static_cast<int>(units), shared_is_large});
  return {name_of(plan.algorithm), plan.ranks};
}

std::string explain_cpu(const Tensor& self, int64_t dim) {
  const Tensor x = checked_input(self, dim, std::nullopt);
  if (x.numel() == 0) return "none: the tensor is empty";
  return "block: one exponential an element, the fastest on CPUs at every shape (" +
         Matrix(x).text() + ")";
}

void run_meta(const Tensor&, Tensor&, std::string_view) {}

using Run = void (*)(const Tensor& x, Tensor& y, std::string_view algorithm);

template <Run run>
Tensor softmax(const Tensor& self, int64_t dim, OptionalType dtype, std::string_view algorithm) {
  const Tensor x = checked_input(self, dim, dtype);
  Tensor y = at::empty(x.sizes(), x.options());
  run(x, y, algorithm);
  return y;
}

template <Run run>
Tensor& softmax_out(const Tensor& self, int64_t dim, OptionalType dtype, std::string_view algorithm,
                    Tensor& out) {
  const Tensor x = checked_input(self, dim, dtype);
  TORCH_CHECK_VALUE(out.device() == x.device(), "online_softmax: out is on ", out.device(),
                    " and the input on ", x.device(), "; accepted: one device");
  TORCH_CHECK_TYPE(out.scalar_type() == x.scalar_type(), "online_softmax: out has dtype ",
                   out.scalar_type(), "; accepted: ", x.scalar_type());
  at::native::resize_output(out, x.sizes());
  at::assert_no_internal_overlap(out);
  at::assert_no_partial_overlap(out, x);
  if (out.is_contiguous()) {
    run(x, out, algorithm);
  } else {
    Tensor y = at::empty(x.sizes(), x.options());
    run(x, y, algorithm);
    out.copy_(y);
  }
  return out;
}

Tensor call(const Tensor& self, int64_t dim, OptionalType dtype, std::string_view algorithm) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("online_softmax::softmax", "")
          .typed<Tensor(const Tensor&, int64_t, OptionalType, std::string_view)>();
  const at::AutoDispatchBelowADInplaceOrView below;
  return op.call(self, dim, dtype, algorithm);
}

struct Differentiable : torch::autograd::Function<Differentiable> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& self, int64_t dim,
                        OptionalType dtype, std::string_view algorithm) {
    const Tensor y = call(self, dim, dtype, algorithm);
    context->save_for_backward({y});
    context->saved_data["dim"] = dim;
    context->saved_data["input_type"] = static_cast<int64_t>(self.scalar_type());
    return y;
  }

  // dx = y·(dy − Σ y·dy)
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const Tensor y = context->get_saved_variables()[0];
    const auto type = static_cast<at::ScalarType>(context->saved_data["input_type"].toInt());
    const Tensor dx = at::_softmax_backward_data(
        gradients[0], y, context->saved_data["dim"].toInt(), y.scalar_type());
    return {dx.to(type), Tensor(), Tensor(), Tensor()};
  }
};

Tensor softmax_autograd(const Tensor& self, int64_t dim, OptionalType dtype,
                        std::string_view algorithm) {
  if (!at::GradMode::is_enabled() || !self.requires_grad())
    return call(self, dim, dtype, algorithm);
  return Differentiable::apply(self, dim, dtype, algorithm);
}

Tensor& softmax_out_autograd(const Tensor& self, int64_t dim, OptionalType dtype,
                             std::string_view algorithm, Tensor& out) {
  TORCH_CHECK(!at::GradMode::is_enabled() || !(self.requires_grad() || out.requires_grad()),
              "online_softmax: out= has no gradient, but an argument requires one; call it under "
              "torch.no_grad() or without out=");
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("online_softmax::softmax", "out")
          .typed<Tensor&(const Tensor&, int64_t, OptionalType, std::string_view, Tensor&)>();
  const at::AutoDispatchBelowADInplaceOrView below;
  return op.call(self, dim, dtype, algorithm, out);
}

}  // namespace

TORCH_LIBRARY(online_softmax, library) {
  library.def(
      "softmax(Tensor self, int dim, ScalarType? dtype=None, str algorithm=\"auto\") -> Tensor");
  library.def(
      "softmax.out(Tensor self, int dim, ScalarType? dtype=None, str algorithm=\"auto\", *, "
      "Tensor(a!) out) -> Tensor(a!)");
  library.def("algorithms(str device) -> str", algorithms);
  library.def("explain(Tensor self, int dim) -> str");
  library.def(
      "planned(int rows, int cols, ScalarType dtype, int units, bool shared_is_large) -> "
      "(str, int)",
      planned);
  library.def("gang_trial(Tensor x, int patience, int late_every) -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(online_softmax, CPU, library) {
  library.impl("softmax", softmax<run_cpu>);
  library.impl("softmax.out", softmax_out<run_cpu>);
  library.impl("explain", explain_cpu);
}

#ifdef ONLINE_SOFTMAX_GPU
TORCH_LIBRARY_IMPL(online_softmax, CUDA, library) {
  library.impl("softmax", softmax<run_gpu>);
  library.impl("softmax.out", softmax_out<run_gpu>);
  library.impl("explain", explain_gpu);
  library.impl("gang_trial", gang_trial);
}
#endif

TORCH_LIBRARY_IMPL(online_softmax, Meta, library) {
  library.impl("softmax", softmax<run_meta>);
  library.impl("softmax.out", softmax_out<run_meta>);
}

TORCH_LIBRARY_IMPL(online_softmax, Autograd, library) {
  library.impl("softmax", softmax_autograd);
  library.impl("softmax.out", softmax_out_autograd);
}

}  // namespace online_softmax
