// A small thread pool. `parallel_for(parts, f)` calls f(part) once for every part in [0, parts).
//
// The caller chooses the partition from the shape of the data only, never from the number of threads; results then have
// the same bits for any number of threads. Calls from inside a part, or while another Python thread holds the pool, run
// on the calling thread alone. After fork() the child has no workers and starts its own when it first needs them. If
// the system refuses to start a worker, the pool works with those it has. The pool checks for Ctrl-C between parts (see
// Monitor).
#pragma once
#include <memory>
#include <string>

#include "core/hot.hpp"

namespace hinge {

// The largest number of threads that can be set.
inline constexpr int kMostThreads = 1024;

int num_threads();
int threads_here();  // 1 inside a part of a loop, where nested loops run on the calling thread
// The number of processors that the control group with files in `folder` may use; kMostThreads if it has no limit.
int quota_of(const std::string& folder);
void set_num_threads(int threads);  // 0: as many as this process may use (affinity and cgroup quota)

namespace detail {
// A function pointer with its context: the part of std::function that is needed here, at a tenth of the compile time.
struct Body {
  void (*call)(const void* f, index_t part);
  const void* f;
};
void run_parts(index_t parts, Body body);
}  // namespace detail

template <class F>
void parallel_for(index_t parts, const F& body) {
  detail::run_parts(parts,
                    {[](const void* f, index_t part) { (*static_cast<const F*>(f))(part); }, std::addressof(body)});
}

// Splits [0, n) into `parts` nearly equal ranges; returns the start of range `part`.
inline index_t range_begin(index_t n, index_t parts, index_t part) { return n * part / parts; }

// Many pieces for each of 16 threads, so that the last piece delays the loop little even if a thread that shares its
// processor or waits for memory takes twice as long.
inline constexpr index_t kMostParts = 256;

// The number of pieces for an amount of work, from its size alone: at least `grain` units each, at most `most` pieces.
inline index_t parts_for(index_t work, index_t grain, index_t most = kMostParts) {
  const index_t parts = work / (grain > 0 ? grain : 1);
  return parts < 1 ? 1 : (parts > most ? most : parts);
}

// Calls f(begin, end) for ranges of at least `grain` that make up [0, n).
template <class F>
void parallel_ranges(index_t n, index_t grain, const F& f) {
  const index_t parts = parts_for(n, grain);
  parallel_for(parts, [&](index_t p) { f(range_begin(n, parts, p), range_begin(n, parts, p + 1)); });
}

// The sum of f(begin, end) over such ranges, added in order.
template <class F>
double sum_ranges(index_t n, index_t grain, const F& f) {
  const index_t parts = parts_for(n, grain);
  double sums[kMostParts];
  parallel_for(parts, [&](index_t p) { sums[p] = f(range_begin(n, parts, p), range_begin(n, parts, p + 1)); });
  double total = 0;
  for (index_t p = 0; p < parts; ++p) total += sums[p];
  return total;
}

// The same for sums in which each piece has its own table: large tables get fewer pieces, because tables take memory
// (8 MB in total, or up to 64 MB where 8 MB would give fewer than 64 pieces) and have to be cleared and added.
inline index_t sum_parts(index_t work, index_t grain, index_t table) {
  constexpr index_t kSmall = index_t{1} << 20, kLarge = index_t{1} << 23, kEnough = 64;
  index_t most = kMostParts;
  if (table > 0) {
    const index_t large = kLarge / table < kEnough ? kLarge / table : kEnough;
    most = kSmall / table > large ? kSmall / table : large;
  }
  const index_t least = grain > 2 * table ? grain : 2 * table;
  return parts_for(work, least, most < 4 ? 4 : (most > kMostParts ? kMostParts : most));
}

}  // namespace hinge
