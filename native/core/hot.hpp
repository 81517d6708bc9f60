// Hot loops are compiled once per instruction set; the loader chooses among them.
//
// HINGE_HOT goes before a free function (or function template) whose loops should use AVX-512 or AVX2 where the machine
// has them. A function that it calls is compiled the same way only if it is inlined: mark that one HINGE_INLINE.
// A hot function allocates nothing and throws nothing: GCC takes a function of several versions for noexcept, so that
// an exception would end the process where a caller has something to clean up. One that must is called through
// may_throw. Nothing is compiled with -march=native, so one wheel runs on every machine.
//
// A build for one machine (HINGE_LEVELS=machine in CMake, which `make build` sets) has hot functions of that machine's
// level only, which halves their compile time. Importing it on a machine of a lower level raises an error.
#pragma once
#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__) || !defined(__GNUC__) || defined(__clang__) || defined(HINGE_NO_CLONES)
#define HINGE_HOT
#elif defined(HINGE_LEVEL)
#define HINGE_HOT __attribute__((target("arch=x86-64-v" HINGE_LEVEL)))
#else
#define HINGE_CLONES
#define HINGE_HOT __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#define HINGE_INLINE inline __attribute__((always_inline))

namespace hinge {
using index_t = std::int64_t;

// A hot function as one of which the compiler knows nothing.
template <class F>
HINGE_INLINE F* may_throw(F* f) {
#ifdef HINGE_CLONES
  asm("" : "+r"(f));
#endif
  return f;
}
}  // namespace hinge
