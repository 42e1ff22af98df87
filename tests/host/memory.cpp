// A look at every access that lanes make to memory.
//
// The kernels are compiled with -fsanitize=thread and linked with the hooks at the end of this
// file instead of the sanitizer's library. So each access is held against what GPUs promise:
// within a launch, two accesses to a word, one of them a write, are ordered if one lane makes
// both or a barrier of their block stands between them, and allowed if both are atomic. The
// verdict does not depend on the schedule that happened to run. Shared memory and results are
// NaN until written, and reading what nobody wrote is an error.
#include <hip/hip_runtime.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <deque>

#include "host.h"

namespace online_softmax {
thread_local uint4 dynamic_shared[8192];  // kernels declare it, a launch says how much is theirs
}

namespace host {
namespace {

constexpr int64_t kGuard = 1 << 20;  // around buffers, without access

struct Region {
  const char* name;
  char* begin;
  int64_t bytes;
  Use use;
  int64_t guard;
  Buffer counts{};
  std::vector<History> histories = std::vector<History>(bytes / 2 + 1);
};

// NaN in every format, and no rank of anything.
void poison(char* begin, int64_t bytes) {
  for (int64_t i = 0; i < bytes; ++i) begin[i] = i % 2 ? 0x7f : 0xff;
}

// What __shared__ declares is the executable's thread-local memory.
Region find_shared() {
  Region found{};
  dl_iterate_phdr(
      [](dl_phdr_info* executable, size_t, void* to) {
        for (int i = 0; i < executable->dlpi_phnum; ++i) {
          const auto& segment = executable->dlpi_phdr[i];
          if (segment.p_type != PT_TLS) continue;
          *static_cast<Region*>(to) = {"shared memory",
                                       static_cast<char*>(executable->dlpi_tls_data),
                                       static_cast<int64_t>(segment.p_memsz), Use::result, 0};
        }
        return 1;  // the executable comes first, and is enough
      },
      &found);
  return found;
}

std::deque<Region> regions = {find_shared()};  // buffers follow
Region& shared = regions.front();
int64_t dynamic_limit;

bool ordered(const Place& a, const Place& b) {
  return a.launch != b.launch ||
         (a.block == b.block && (a.lane == b.lane || a.barriers != b.barriers));
}

// The access to two bytes, against those before it.
void check_history(const Region& region, History& history, int64_t at, bool write, Touch now) {
  const auto refuse_race = [&](const Touch& before, const char* what) {
    if (ordered(before.place, now.place) || (before.atomic && now.atomic)) return;
    fail("race: it %s byte %ld of %s, which block %d lane %d %s, with no barrier in between",
         write ? "writes" : "reads", at, region.name, before.place.block, before.place.lane, what);
  };
  refuse_race(history.write, "writes");
  if (write) {
    for (const Touch& read : history.reads) refuse_race(read, "reads");
    history.write = now;
    return;
  }
  if (history.write.place.launch == 0) {
    fail("it reads byte %ld of %s, which nobody wrote", at, region.name);
  }
  history.reads[ordered(history.reads[0].place, now.place) ? 0 : 1] = now;
}

}  // namespace

void check(const void* address, size_t size, bool write, Kind kind) {
  if (here.lane < 0) return;
  const auto bytes = static_cast<int64_t>(size);
  for (Region& region : regions) {
    const int64_t at = static_cast<const char*>(address) - region.begin;
    if (at < -region.guard || at >= region.bytes + region.guard) continue;
    const char* what = write ? "writes" : "reads";
    if (at < 0 || at + bytes > region.bytes) {
      fail("it %s byte %ld of %s, which has %ld", what, at, region.name, region.bytes);
    }
    const int64_t dynamic =
        static_cast<const char*>(address) - reinterpret_cast<char*>(online_softmax::dynamic_shared);
    if (dynamic >= 0 && dynamic < int64_t{sizeof online_softmax::dynamic_shared} &&
        dynamic + bytes > dynamic_limit) {
      fail("it %s byte %ld of dynamic shared memory, which has %ld", what, dynamic, dynamic_limit);
    }
    if (write && region.use == Use::given) fail("it writes byte %ld of %s", at, region.name);
    if (kind == Kind::plain) {
      (write ? region.counts.bytes_written : region.counts.bytes_read) += bytes;
    }
    for (int64_t i = at / 2; i < (at + bytes + 1) / 2; ++i) {
      check_history(region, region.histories[i], 2 * i, write, {here, kind == Kind::atomic});
    }
    return;
  }
}

Shared fresh_shared() {
  Shared fresh{std::vector<char>(shared.bytes), std::vector<History>(shared.histories.size())};
  poison(fresh.bytes.data(), shared.bytes);
  return fresh;
}

void exchange(Shared& other) {
  std::swap_ranges(other.bytes.begin(), other.bytes.end(), shared.begin);
  other.histories.swap(shared.histories);
}

void limit_dynamic_shared(size_t bytes) {
  constexpr size_t most = sizeof online_softmax::dynamic_shared;
  if (bytes > most) fail("a launch asks for %zu bytes of shared memory; at most %zu", bytes, most);
  dynamic_limit = static_cast<int64_t>(bytes);
}

Buffer& allocate(const char* name, size_t bytes, size_t offset, Use use) {
  constexpr size_t kPage = 4096;
  const size_t pages = (offset + bytes + kPage - 1) / kPage * kPage;
  void* const all = mmap(nullptr, pages + 2 * kGuard, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  char* const middle = static_cast<char*>(all) + kGuard;
  if (all == MAP_FAILED || mprotect(middle, pages, PROT_READ | PROT_WRITE) != 0) {
    fail("no memory for the %zu bytes of %s", bytes, name);
  }
  Region& region =
      regions.emplace_back(Region{name, middle + offset, static_cast<int64_t>(bytes), use, kGuard});
  region.counts.begin = region.begin;
  if (use == Use::result) {
    poison(region.begin, region.bytes);
  } else {
    for (History& history : region.histories) history.write.place.launch = here.launch;
  }
  return region.counts;
}

namespace {
void check_vector(const void* address, bool write) {
  if (reinterpret_cast<uintptr_t>(address) % 16 != 0) {
    fail("it %s a vector that is not on a 16-byte boundary", write ? "writes" : "reads");
  }
  check(address, 16, write, Kind::plain);
}
}  // namespace

void load(void* to, const void* from) {
  check_vector(from, false);
  memcpy(to, from, 16);
}

void store(void* to, const void* from) {
  check_vector(to, true);
  memcpy(to, from, 16);
}

}  // namespace host

// ---------------------------------------------------- what the compiler calls before accesses

#define HOOKS(bytes)                                                                      \
  void __tsan_read##bytes(void* at) { host::check(at, bytes, false, host::Kind::plain); } \
  void __tsan_write##bytes(void* at) { host::check(at, bytes, true, host::Kind::plain); } \
  void __tsan_unaligned_read##bytes(void* at) { __tsan_read##bytes(at); }                 \
  void __tsan_unaligned_write##bytes(void* at) { __tsan_write##bytes(at); }

extern "C" {
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_read_range(void* at, size_t n) { host::check(at, n, false, host::Kind::plain); }
void __tsan_write_range(void* at, size_t n) { host::check(at, n, true, host::Kind::plain); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
}
