// What the files of tests/host ask of one another.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace host {

// ---------------------------------------------------------------------------- lanes.cpp

// Who runs first, of blocks and of lanes, and how many blocks are on the machine at once.
enum class Order { forward, reversed, shuffled };
struct Schedule {
  Order order = Order::forward;
  unsigned seed = 0;
  int resident = 4;
};
extern Schedule schedule;

// The lane that runs, and when: the launch, and how many barriers its block has passed.
struct Place {
  int block = 0, barriers = 0;
  int16_t launch = 1;  // counts launches, from 2
  int16_t lane = -1;   // -1: host code runs
};
extern Place here;

// --------------------------------------------------------------------------- memory.cpp

// Memory that kernels may touch, `offset` bytes past a 16-byte boundary; nothing around it may
// be. `given` memory holds what the test puts there, a `result` what nobody wrote yet.
enum class Use { given, result, given_and_result };
struct Buffer {
  char* begin;
  int64_t bytes_read, bytes_written;  // by plain accesses of all launches
};
Buffer& allocate(const char* name, size_t bytes, size_t offset, Use use);

// A touch of two bytes, the smallest number there is. Of reads the last two are kept: they stand
// for all, since at least one of two is not by the lane that writes next.
struct Touch {
  Place place;
  bool atomic = false;
};
struct History {
  Touch write{{0, 0, 0, 0}}, reads[2] = {{{0, 0, 0, 0}}, {{0, 0, 0, 0}}};  // launch 0: nobody
};

// The shared memory of a block whose turn it is not.
struct Shared {
  std::vector<char> bytes;
  std::vector<History> histories;
};
Shared fresh_shared();
void exchange(Shared& other);             // with what is in place
void limit_dynamic_shared(size_t bytes);  // for the launch that comes

enum class Kind { plain, atomic };
void check(const void* address, size_t bytes, bool write, Kind kind);

// ----------------------------------------------------------------------------------------

// The first error ends the run.
constexpr int kStatusOfError = 3;
template <typename... Values>
[[noreturn]] void fail(const char* format, Values... values) {
  if (here.lane >= 0) fprintf(stderr, "block %d lane %d: ", here.block, here.lane);
  fprintf(stderr, format, values...);
  fputc('\n', stderr);
  _exit(kStatusOfError);
}

}  // namespace host
