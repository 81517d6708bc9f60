// The forward and backward recursions on scaled probabilities, in either precision.
//
// Each direction has its own scale (Rabiner 1989, section V.A). All a scale can hide are terms below the smallest
// number of the precision; a sequence where a normaliser falls under `least` has to be done again with logarithms.
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

// e_t = exp(s_t - max s_t), alpha_t = e_t * (alpha_{t-1} E) / c_{t-1}, c_t the sum of alpha_t: the division is by the
// sum before, so that the product need not wait for it. Returns log Z, or NaN if a scale got too small.
template <class Real>
double forward(const Steps<Real>& steps, index_t length, const Real* scores, Real* e, Real* alpha);

// Backwards with a scale of its own; gamma gets the marginals, e_t becomes weight * e_t b_t / z_t. False if a scale got
// too small.
template <class Real>
bool backward(const Steps<Real>& steps, index_t length, Real* e, const Real* alpha, Real* gamma, Real weight = 1);

// A += sum_t left_t' right_t over `rows` rows; A is width x width.
template <class Real>
void outer(const Real* left, const Real* right, index_t rows, index_t width, Real* A);

}  // namespace hinge::chain
