// NumPy arrays in and out, without copies.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
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

inline void expect(bool ok, const char* what) {
  if (!ok) throw nb::value_error(what);
}

// Reads an option from a dictionary; throws with the option's name if its type is wrong.
template <class T>
T option(const nb::dict& d, const char* name) {
  try {
    return nb::cast<T>(d[name]);
  } catch (const nb::cast_error&) {
    throw nb::type_error(
        (std::string(name) + " has a value of a wrong type or out of range: " + nb::repr(d[name]).c_str()).c_str());
  }
}

template <class A>
index_t size_of(const A& array) {
  return static_cast<index_t>(array.shape(0));
}

// Hands a vector's memory to NumPy. Call with the GIL held.
template <class T, class Memory>
nb::ndarray<nb::numpy, T, nb::ndim<1>> own(std::vector<T, Memory>&& data) {
  auto* heap = new std::vector<T, Memory>(std::move(data));
  nb::capsule owner(heap, [](void* p) noexcept { delete static_cast<std::vector<T, Memory>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(heap->data(), {heap->size()}, owner);
}

template <class T, class Memory>
nb::ndarray<nb::numpy, T, nb::ndim<2>> own(std::vector<T, Memory>&& data, std::size_t rows, std::size_t cols) {
  auto* heap = new std::vector<T, Memory>(std::move(data));
  nb::capsule owner(heap, [](void* p) noexcept { delete static_cast<std::vector<T, Memory>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<2>>(heap->data(), {rows, cols}, owner);
}

}  // namespace hinge
