// Whether all of an array is finite, on all threads: a pass at the speed of memory.
#pragma once
#include "core/hot.hpp"

namespace hinge {

template <class T>
bool all_finite(const T* x, index_t n);

}  // namespace hinge
