// Exhaustive search for nearest neighbours.
#pragma once
#include "neighbors/distance.hpp"
#include "problem/kernels.hpp"

namespace hinge {

// The k nearest of `points` for every query. Points are dense or, for the Euclidean and cosine metrics, sparse. With
// `same` the queries are the points, and no point is its own neighbour. Threads divide the queries among them; the
// points are scanned in the same order for each.
template <class T>
Neighbours nearest_of_all(const Distance& distance, const Points<T>& queries, const Points<T>& points, index_t k,
                          bool same);

}  // namespace hinge
