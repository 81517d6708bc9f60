// NumPy arrays in and out, without copies.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

#include "core/hot.hpp"

namespace hinge {

namespace nb = nanobind;

template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = In1<double>;
using Matrix = In2<double>;
using OutVector = nb::ndarray<nb::numpy, double, nb::ndim<1>>;
using OutMatrix = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

// Hands a vector's memory to NumPy. Call with the GIL held.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> own(std::vector<T>&& data) {
  auto* heap = new std::vector<T>(std::move(data));
  nb::capsule owner(heap, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(heap->data(), {heap->size()}, owner);
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<2>> own(std::vector<T>&& data, std::size_t rows, std::size_t cols) {
  auto* heap = new std::vector<T>(std::move(data));
  nb::capsule owner(heap, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<2>>(heap->data(), {rows, cols}, owner);
}

}  // namespace hinge
