// Isotonic regression.
//
// Problem     min_f sum_i w_i (y_i - f_i)^2 subject to f_1 <= f_2 <= ... <= f_n, w_i > 0
// Method      pool adjacent violators: keep blocks with their means; a block below the one before it is merged into it
// Optimality  the means rise, and within a block every weighted partial sum of y - f from the left is >= 0
// Returns     f; O(n)
// Reference   Best & Chakravarti (1990)
#pragma once
#include <vector>

#include "core/hot.hpp"

namespace hinge {

std::vector<double> isotonic(const double* y, const double* w, index_t n);

}  // namespace hinge
