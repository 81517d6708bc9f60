// A small thread pool. `parallel_for(parts, f)` calls f(part) once for every part in [0, parts).
//
// The partition is the caller's and must depend on the shape of the data only, never on the number of
// threads: then results are the same bits for any number of threads. Calls from inside a part, or while
// another Python thread holds the pool, run on the calling thread alone. After fork() the child starts with
// no workers and makes its own when it first needs them. Where the system refuses a worker, those there are do the
// work. Ctrl-C is looked at between parts (see Monitor).
#pragma once
#include <memory>

#include "core/hot.hpp"

namespace hinge {

// More threads than this are never asked for by anyone who means it.
inline constexpr int kMostThreads = 1024;

int num_threads();
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

// How many pieces to cut work into, from its size alone: pieces of at least `grain` units, at most `most` of
// them.
inline index_t parts_for(index_t work, index_t grain, index_t most = 32) {
  const index_t parts = work / (grain > 0 ? grain : 1);
  return parts < 1 ? 1 : (parts > most ? most : parts);
}

}  // namespace hinge
