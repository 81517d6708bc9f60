// From a loss to the gradients and Hessians that trees are fitted to, and to rounded rows for the histograms.
#pragma once
#include <vector>

#include "models/tree_hist.hpp"
#include "problem/loss.hpp"

namespace hinge::trees {

// How the second derivative enters: the loss's own, or one number for every row (a bound of it).
struct Curvature {
  bool own = true;
  double bound = 1;
};

// g = w l'(y, s), h = w l''(y, s) or w times the bound; w may be null. Returns nothing: the loss is not evaluated.
void gradients(const Loss& loss, bool logistic, const double* y, const double* s, const double* w, index_t n,
               const Curvature& curvature, float* g, float* h);
void gradients(const Loss& loss, bool logistic, const double* y, const double* s, const double* w, index_t n,
               const Curvature& curvature, double* g, double* h);

// Softmax over k classes: y holds codes, s, g, h are k x n (one class after the other).
template <class T>
void softmax_gradients(const double* y, const double* s, const double* w, index_t n, index_t k, T* g, T* h);

// Rounds g and h (of n rows) for one tree. `constant_h` > 0 says that every Hessian is that number.
void round_rows(const float* g, const float* h, index_t n, double constant_h, std::uint64_t seed, Rounded& out);
// Fixed point with a power-of-two unit. g and h are unweighted here and w (may be null) multiplies whole units, so that
// an integer weight is exactly the same as repetition.
void round_rows(const double* g, const double* h, const double* w, index_t n, Rounded& out);

}  // namespace hinge::trees
