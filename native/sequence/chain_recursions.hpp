// The forward and backward recursions on scaled probabilities, in either precision.
//
// Each direction has a separate scale (Rabiner 1989, section V.A). Scaling can only lose terms below the smallest
// number of the precision; a sequence with a normaliser below `least` has to be recomputed with logarithms.
#pragma once
#include "sequence/chain.hpp"

namespace hinge::chain {

// exp(T - shift) and its transpose, labels x width.
template <class Real>
struct Steps {
  index_t labels, width;
  double shift;
  const Real *power, *power_t;
};

// e_t = exp(s_t - max s_t), alpha_t = e_t * (alpha_{t-1} E) / c_{t-1}, c_t the sum of alpha_t. The division uses the
// previous sum, so that the product need not wait for the current one. Returns log Z, or NaN if a scale is too small.
template <class Real>
double forward(const Steps<Real>& steps, index_t length, const Real* scores, Real* e, Real* alpha);

// The backward recursion with its own scale; gamma receives the marginals, and e_t becomes weight * e_t b_t / z_t.
// Returns false if a scale is too small.
template <class Real>
bool backward(const Steps<Real>& steps, index_t length, Real* e, const Real* alpha, Real* gamma, Real weight = 1);

// A += sum_t left_t' right_t over `rows` rows; A is width x width.
template <class Real>
void outer(const Real* left, const Real* right, index_t rows, index_t width, Real* A);

}  // namespace hinge::chain
