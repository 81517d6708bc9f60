// Whether an array is fit to be computed with, on all threads: a pass at the speed of memory.
#pragma once
#include "core/hot.hpp"

namespace hinge {

template <class T>
bool all_finite(const T* x, index_t n);

// Whether every index is at least 0 and below `bound`.
template <class I>
bool all_within(const I* x, index_t n, index_t bound);

}  // namespace hinge
