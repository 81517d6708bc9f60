// Declarations shared by the bindings of trees.
#pragma once
#include "bind/arrays.hpp"
#include "trees/bins.hpp"
#include "trees/builder.hpp"

namespace hinge {

template <class T>
using AnyMatrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

template <class T>
trees::Table<T> table(const AnyMatrix<T>& x) {
  return {x.data(), static_cast<index_t>(x.shape(0)), static_cast<index_t>(x.shape(1)), x.stride(0), x.stride(1)};
}

template <class T>
std::vector<T> copy(const In1<T>& a) {
  return std::vector<T>(a.data(), a.data() + a.shape(0));
}

nb::dict to_dict(trees::Nodes&& t);
// Growth options; throws unless they fit a table with this many columns.
trees::GrowOptions grow_options(const nb::dict& d, index_t cols);

}  // namespace hinge
