// How hot loops are compiled: once per instruction set, chosen when the library is loaded.
//
// HINGE_HOT goes before a free function (or function template) whose loops should use AVX-512 or AVX2 where
// the machine has them. What such a function calls gets the same treatment only if it is inlined: mark it
// HINGE_INLINE. Nothing is ever compiled with -march=native, so one wheel runs everywhere.
//
// A build for the machine it is made on (HINGE_LEVELS=machine in CMake, as `make build` asks for) has hot functions of
// that machine's level only, which halves the time to compile them. Importing it on a lesser machine is refused.
#pragma once
#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__) || !defined(__GNUC__) || defined(__clang__) || defined(HINGE_NO_CLONES)
#define HINGE_HOT
#elif defined(HINGE_LEVEL)
#define HINGE_HOT __attribute__((target("arch=x86-64-v" HINGE_LEVEL)))
#else
#define HINGE_HOT __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#define HINGE_INLINE inline __attribute__((always_inline))

namespace hinge {
using index_t = std::int64_t;
}
