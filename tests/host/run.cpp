// Runs one softmax of softmax.hip on the CPU: run NAME=NUMBER ..., a matrix on standard input,
// its softmax on standard output, and on standard error how many bytes the kernels moved. Without
// arguments: the vectors that each launch shape of each rung holds.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "dispatch.h"
#include "host.h"

using namespace online_softmax;

namespace {

// What a run is made of. `ranks` = 0 leaves the plan to dispatch.h.
std::map<std::string, int64_t> asked = {
    {"algorithm", 0}, {"dtype", 0},      {"rows", 1},  {"cols", 1},  {"x_offset", 0},
    {"y_offset", 0},  {"in_place", 0},   {"shape", 0}, {"ranks", 0}, {"slice_vectors", 0},
    {"patience", 64}, {"late_every", 0}, {"order", 0}, {"seed", 0},  {"resident", 4}};

void read(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const size_t equals = argument.find('=');
    const auto known = asked.find(argument.substr(0, equals));
    if (equals == std::string::npos || known == asked.end()) {
      fprintf(stderr, "%s: accepted are NAME=NUMBER with NAME one of", arguments[i]);
      for (const auto& [name, value] : asked) fprintf(stderr, " %s", name.c_str());
      fputc('\n', stderr);
      exit(2);
    }
    known->second = std::stoll(argument.substr(equals + 1));
  }
}

template <typename Shapes>
void print(const char* rung, const Shapes& shapes) {
  printf("\"%s\": [", rung);
  const char* comma = "";
  for (const auto& shape : shapes) {
    printf("%s%ld", comma, shape.vectors());
    comma = ", ";
  }
  printf("]");
}

int print_shapes() {
  printf("{");
  print("warp", kWarpShapes);
  printf(", ");
  print("block", kBlockShapes[kSharedMemoryIsLarge]);
  printf(", ");
  print("gang", kGangShapes[kSharedMemoryIsLarge]);
  printf("}\n");
  return 0;
}

int of(const char* name) { return static_cast<int>(asked.at(name)); }

}  // namespace

int main(int count, char** arguments) {
  if (count == 1) return print_shapes();
  read(count, arguments);
  host::schedule = {static_cast<host::Order>(of("order")), static_cast<unsigned>(of("seed")),
                    of("resident")};
  const Problem problem{of("rows"), of("cols"), static_cast<Dtype>(of("dtype")),
                        of("in_place") != 0};
  Plan plan = plan_gpu(static_cast<Algorithm>(of("algorithm")), problem);
  if (of("ranks") > 0) {
    const int64_t words = problem.rows * of("ranks") + 1;
    plan = {static_cast<Algorithm>(of("algorithm")),
            "asked for",
            of("shape"),
            of("ranks"),
            of("slice_vectors"),
            words * 8};
  }
  plan.patience = of("patience");
  plan.late_every = of("late_every");

  const int64_t size = element_bytes(problem.dtype);
  const size_t bytes = static_cast<size_t>(problem.rows * problem.cols * size);
  auto& x = host::allocate("x", bytes, of("x_offset") * size,
                           problem.in_place ? host::Use::given_and_result : host::Use::given);
  auto& y =
      problem.in_place ? x : host::allocate("y", bytes, of("y_offset") * size, host::Use::result);
  auto& workspace = host::allocate("the workspace", plan.workspace, 0, host::Use::result);
  if (fread(x.begin, 1, bytes, stdin) != bytes) {
    fprintf(stderr, "standard input ended before %zu bytes\n", bytes);
    return 2;
  }
  const int error = softmax_gpu(plan, problem, x.begin, y.begin, workspace.begin, nullptr);
  fwrite(y.begin, 1, bytes, stdout);
  const int64_t helped =
      plan.algorithm == Algorithm::gang ? *reinterpret_cast<int64_t*>(workspace.begin) : 0;
  fprintf(stderr, "{\"algorithm\": %d, \"read\": %ld, \"written\": %ld, \"helped\": %ld}\n",
          static_cast<int>(plan.algorithm), x.bytes_read, y.bytes_written, helped);
  return error;
}
