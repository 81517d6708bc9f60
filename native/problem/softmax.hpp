// The softmax loss over k classes: l = log sum_j exp(s_j) - s_y, for n rows of k scores (row-major).
#pragma once
#include "core/hot.hpp"

namespace hinge {

// U_i = c_i (p(s_i) - e_{y_i}), where p is the softmax; returns sum_i c_i l(y_i, s_i). y holds class numbers.
double softmax_gradient(const double* y, const double* S, const double* c, index_t n, index_t k, double* U);

// p = softmax(s) for one row; returns log sum exp(s).
double softmax_row(const double* s, index_t k, double* p);

// P = softmax of every row.
void softmax_rows(const double* S, index_t n, index_t k, double* P);

}  // namespace hinge
