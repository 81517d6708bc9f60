// Loops that gather are written with AVX-512 intrinsics: a compiler with generic tuning does not emit gathers.
#pragma once
#include "core/hot.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(HINGE_NO_CLONES)
#include <immintrin.h>
#define HINGE_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#endif

namespace hinge::trees {

inline bool have_gathers() {
#if defined(HINGE_AVX512)
  static const bool have = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return have;
#else
  return false;
#endif
}

}  // namespace hinge::trees
