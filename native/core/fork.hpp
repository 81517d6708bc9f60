// Handlers of forks; Windows has no forks.
#pragma once
#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace hinge {

// Run `before` in the parent ahead of a fork, `parent` and `child` after it on either side; each may be null.
inline int at_fork([[maybe_unused]] void (*before)(), [[maybe_unused]] void (*parent)(),
                   [[maybe_unused]] void (*child)()) {
#if defined(_WIN32)
  return 0;
#else
  return pthread_atfork(before, parent, child);
#endif
}

}  // namespace hinge
