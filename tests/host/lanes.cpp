// Lanes, waves and blocks on one CPU thread.
//
// A lane is a fiber. It runs until it has to meet other lanes, or comes to an atomic, where it
// pauses so that other blocks go first. Lanes that meet must all come, to the same point: a wave
// that parts at a shuffle, and a barrier that some lanes leave out, are errors.
#include <hip/hip_runtime.h>
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "host.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace host {

Schedule schedule;
Place here;

namespace {

constexpr size_t kStack = 1 << 16;

enum class State { ready, paused, shuffle, vote, barrier, done };
constexpr const char* kNames[] = {"ready", "paused", "a shuffle", "a vote", "a barrier", "its end"};

struct Lane {
  char* stack;
  bool begun = false;
  jmp_buf stopped;  // where
  State state = State::ready;
  int mask = 0;        // of its shuffle
  uint64_t value = 0;  // that it brings to a meeting, and then what it takes from there
  std::vector<std::pair<void*, const void*>> copies;
};

struct Block {
  int index;
  std::vector<Lane> lanes;
  Shared shared = fresh_shared();
  int barriers = 0;

  size_t count(State state) const {
    return std::count_if(lanes.begin(), lanes.end(),
                         [=](const Lane& lane) { return lane.state == state; });
  }
};

const std::function<void()>* kernel;
Lane* running;
jmp_buf scheduler;
std::vector<char*> spare_stacks;
std::mt19937 chance;

// 0 to n − 1, in the order of the schedule.
std::vector<int> arranged(size_t n) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  if (schedule.order == Order::reversed) std::reverse(order.begin(), order.end());
  if (schedule.order == Order::shuffled) std::shuffle(order.begin(), order.end(), chance);
  return order;
}

// ------------------------------------------------------------------------------- fibers

void lane_main() {
  (*kernel)();
  running->state = State::done;
  _longjmp(scheduler, 1);
}

// Leaves the lane until it is resumed; returns what the others had for it.
uint64_t stop(State why, uint64_t value = 0, int mask = 0) {
  running->state = why;
  running->value = value;
  running->mask = mask;
  if (_setjmp(running->stopped) == 0) _longjmp(scheduler, 1);
  return running->value;
}

// A new stack takes ucontext; later switches are jumps, which spare its system calls.
void resume(Lane& lane) {
  running = &lane;
  if (_setjmp(scheduler) != 0) return;
  if (lane.begun) _longjmp(lane.stopped, 1);
  lane.begun = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = lane.stack;
  context.uc_stack.ss_size = kStack;
  makecontext(&context, lane_main, 0);
  setcontext(&context);
}

// ----------------------------------------------------------------------- meeting points

// Lets a wave go on from a shuffle or a vote, if it is there.
bool meet(Block& block, size_t first) {
  const auto begin = block.lanes.begin() + first;
  const auto end = begin + std::min<size_t>(warpSize, block.lanes.size() - first);
  std::vector<Lane*> live;
  for (auto lane = begin; lane != end; ++lane) {
    if (lane->state == State::paused) return false;
    if (lane->state != State::done) live.push_back(&*lane);
  }
  if (live.empty()) return false;

  const Lane& one = *live[0];
  for (const Lane* lane : live) {
    if (lane->state != one.state || lane->mask != one.mask) {
      fail("block %d: the lanes of a wave part: lane %td is at %s, lane %td at %s", block.index,
           &one - block.lanes.data(), kNames[static_cast<int>(one.state)],
           lane - block.lanes.data(), kNames[static_cast<int>(lane->state)]);
    }
  }
  if (one.state == State::barrier) return false;

  std::vector<uint64_t> taken;
  for (const Lane* lane : live) {
    if (one.state == State::vote) {
      taken.push_back(std::any_of(live.begin(), live.end(), [](Lane* l) { return l->value; }));
      continue;
    }
    const auto other = begin + ((lane - &*begin) ^ lane->mask);
    if (other >= end || other->state == State::done) {
      fail("block %d: lane %td shuffles with a lane that is not there", block.index,
           lane - block.lanes.data());
    }
    taken.push_back(other->value);
  }
  for (size_t i = 0; i < live.size(); ++i) {
    live[i]->value = taken[i];
    live[i]->state = State::ready;
  }
  return true;
}

// Lets a block go on from a barrier, if it is there.
bool pass_barrier(Block& block) {
  if (block.count(State::paused) > 0 || block.count(State::barrier) == 0) return false;
  if (block.count(State::done) > 0) {
    fail("block %d: some lanes wait at a barrier, others are at their end", block.index);
  }
  for (Lane& lane : block.lanes) lane.state = State::ready;
  ++block.barriers;
  return true;
}

// -------------------------------------------------------------------------------- turns

// Runs a block until its lanes have ended, or are paused and can but wait for other blocks.
void turn(Block& block) {
  blockIdx.x = static_cast<unsigned>(block.index);
  exchange(block.shared);
  for (bool moving = true; moving;) {
    for (const int i : arranged(block.lanes.size())) {
      if (block.lanes[i].state != State::ready) continue;
      threadIdx.x = static_cast<unsigned>(i);
      here = {block.index, block.barriers, here.launch, static_cast<int16_t>(i)};
      resume(block.lanes[i]);
    }
    here.lane = -1;
    moving = false;
    for (size_t first = 0; first < block.lanes.size(); first += warpSize) {
      moving |= meet(block, first);
    }
    moving = moving || pass_barrier(block);
  }
  exchange(block.shared);
  for (Lane& lane : block.lanes) {
    if (lane.state == State::paused) lane.state = State::ready;
  }
}

std::unique_ptr<Block> start(int index, size_t lanes) {
  auto block = std::make_unique<Block>(Block{index, std::vector<Lane>(lanes)});
  for (Lane& lane : block->lanes) {
    if (spare_stacks.empty()) spare_stacks.push_back(new char[kStack]);
    lane.stack = spare_stacks.back();
    spare_stacks.pop_back();
  }
  return block;
}

}  // namespace

void run(dim3 grid, dim3 lanes, size_t dynamic_shared, const std::function<void()>& what) {
  limit_dynamic_shared(dynamic_shared);
  kernel = &what;
  gridDim = grid;
  blockDim = lanes;
  chance.seed(schedule.seed);
  ++here.launch;
  const std::vector<int> blocks = arranged(grid.x);
  size_t started = 0;
  std::vector<std::unique_ptr<Block>> resident;
  while (started < blocks.size() || !resident.empty()) {
    while (started < blocks.size() && resident.size() < static_cast<size_t>(schedule.resident)) {
      resident.push_back(start(blocks[started++], lanes.x));
    }
    for (const int i : arranged(resident.size())) {
      // In a shuffled schedule some blocks fall behind the others.
      if (schedule.order == Order::shuffled && chance() % 2) continue;
      turn(*resident[i]);
      if (resident[i]->count(State::done) < lanes.x) continue;
      for (const Lane& lane : resident[i]->lanes) spare_stacks.push_back(lane.stack);
      resident[i].reset();
    }
    resident.erase(std::remove(resident.begin(), resident.end(), nullptr), resident.end());
  }
}

uint64_t shuffle(uint64_t bits, int mask) { return stop(State::shuffle, bits, mask); }
bool any(bool mine) { return stop(State::vote, mine); }
void barrier() { stop(State::barrier); }

void copy_later(void* shared, const void* global) { running->copies.emplace_back(shared, global); }

void copy_now() {
  for (const auto& [shared, global] : running->copies) {
    uint4 vector;
    load(&vector, global);
    store(shared, &vector);
  }
  running->copies.clear();
}

}  // namespace host

uint64_t __hip_atomic_load(const uint64_t* from, int, int) {
  host::stop(host::State::paused);
  host::check(from, sizeof *from, false, host::Kind::atomic);
  return *from;
}

bool __hip_atomic_compare_exchange_strong(uint64_t* at, uint64_t* expected, uint64_t desired, int,
                                          int, int) {
  host::stop(host::State::paused);
  host::check(at, sizeof *at, true, host::Kind::atomic);
  const uint64_t found = *at;
  const bool swapped = found == *expected;
  if (swapped) *at = desired;
  *expected = found;
  return swapped;
}

uint64_t __hip_atomic_fetch_add(uint64_t* at, uint64_t value, int, int) {
  host::stop(host::State::paused);
  host::check(at, sizeof *at, true, host::Kind::atomic);
  return (*at += value) - value;
}
