// A small thread pool. `parallel_for(parts, f)` calls f(part) once for every part in [0, parts).
//
// The partition is the caller's and must depend on the shape of the data only, never on the number of
// threads: then results are the same bits for any number of threads. Calls from inside a part, or while
// another Python thread holds the pool, run on the calling thread alone. After fork() the child starts with
// no workers and makes its own when it first needs them. Where the system refuses a worker, those there are do the
// work. Ctrl-C is looked at between parts (see Monitor).
#pragma once
#include <memory>
#include <string>

#include "core/hot.hpp"

namespace hinge {

// The largest number of threads that can be set.
inline constexpr int kMostThreads = 1024;

int num_threads();
int threads_here();  // 1 inside a part of a loop: what is called there runs alone
// How many processors the control group whose files lie in the folder may use; kMostThreads if it has no limit.
int quota_of(const std::string& folder);
void set_num_threads(int threads);  // 0: as many as this process may use (affinity and cgroup quota)

namespace detail {
// A function and what it belongs to: all that std::function would be needed for here, at a tenth of the compile time.
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

// Splits [0, n) into `parts` nearly equal ranges; returns where range `part` begins.
inline index_t range_begin(index_t n, index_t parts, index_t part) { return n * part / parts; }

// Many pieces for each of 16 threads: the last ones to finish delay the others little, though threads that share a
// processor or wait for memory take twice as long for some.
inline constexpr index_t kMostParts = 256;

// How many pieces to cut work into, from its size alone: pieces of at least `grain` units, at most `most` of
// them.
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

// The same for sums in which every piece fills a table of its own: fewer where the tables are large, since they take
// memory (8 MB in all, or 64 where that would be few) and have to be cleared and added up.
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
