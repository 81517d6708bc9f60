// Checks of input arrays on all threads, at memory bandwidth.
#pragma once
#include "core/hot.hpp"

namespace hinge {

template <class T>
bool all_finite(const T* x, index_t n);

// Whether row (or column) pointers start at 0 and never decrease.
template <class I>
bool rising(const I* start, index_t major);

// Classifies the indices of a compressed matrix whose pointers are `rising` and end inside `index`: broken if any index
// is outside [0, minor), disordered if the indices of a row are unsorted or repeated, otherwise canonical.
enum class Compressed { broken, disordered, canonical };
template <class I>
Compressed check_compressed(const I* start, index_t major, const I* index, index_t minor);

}  // namespace hinge
