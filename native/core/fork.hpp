// Fork handlers; Windows has no fork.
#pragma once
#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace hinge {

// Registers `before` to run in the parent before a fork, and `parent` and `child` to run after it; each may be null.
inline int at_fork([[maybe_unused]] void (*before)(), [[maybe_unused]] void (*parent)(),
                   [[maybe_unused]] void (*child)()) {
#if defined(_WIN32)
  return 0;
#else
  return pthread_atfork(before, parent, child);
#endif
}

}  // namespace hinge
