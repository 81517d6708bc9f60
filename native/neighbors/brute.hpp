// The nearest neighbours by looking at every pair.
#pragma once
#include "neighbors/distance.hpp"
#include "problem/kernels.hpp"

namespace hinge {

// The k nearest of `points` for every query. Dense or, for the Euclidean and cosine metrics, sparse. With `same` the
// queries are the points, and none is its own neighbour. Threads share the queries; each is searched in one order.
template <class T>
Neighbours nearest_of_all(const Distance& distance, const Points<T>& queries, const Points<T>& points, index_t k,
                          bool same);

}  // namespace hinge
