// Whether an array is fit to be computed with, on all threads: a pass at the speed of memory.
#pragma once
#include "core/hot.hpp"

namespace hinge {

template <class T>
bool all_finite(const T* x, index_t n);

// Row (or column) pointers that begin at 0 and never decrease.
template <class I>
bool rising(const I* start, index_t major);

// The indices of a compressed matrix whose pointers are `rising` and end inside `index`: outside [0, minor), inside but
// unsorted or repeated within a row, or sorted without repetition.
enum class Compressed { broken, disordered, canonical };
template <class I>
Compressed check_compressed(const I* start, index_t major, const I* index, index_t minor);

}  // namespace hinge
