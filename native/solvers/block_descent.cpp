#include "solvers/block_descent.hpp"

#include <algorithm>
#include <cmath>

#include "core/vec.hpp"

namespace hinge {

BlockDescent::BlockDescent(const BlockProblem& problem, std::vector<double> W)
    : p_(problem), W_(std::move(W)), R_(p_.Q, p_.Q + p_.d * p_.k), step_(p_.k) {
  for (index_t j = 0; j < p_.d; ++j) {
    const double* w = W_.data() + j * p_.k;
    if (std::all_of(w, w + p_.k, [](double x) { return x == 0; })) continue;
    for (index_t i = 0; i < p_.d; ++i) vec::axpy(-p_.G[j * p_.d + i], w, R_.data() + i * p_.k, p_.k);
  }
}

void BlockDescent::round() {
  const index_t d = p_.d, k = p_.k;
  for (index_t j = 0; j < d; ++j) {
    const double curvature = p_.G[j * d + j], total = curvature + strength_ * p_.l2[j];
    double *w = W_.data() + j * k, *r = R_.data() + j * k;
    if (!(total > 0)) continue;
    double squares = 0;
    for (index_t t = 0; t < k; ++t) {
      step_[t] = r[t] + curvature * w[t];
      squares += step_[t] * step_[t];
    }
    const double norm = std::sqrt(squares), l1 = strength_ * p_.l1[j];
    const double keep = norm > l1 ? (1.0 - l1 / norm) / total : 0.0;
    bool moved = false;
    for (index_t t = 0; t < k; ++t) {
      const double next = keep * step_[t];
      step_[t] = next - w[t];
      moved |= step_[t] != 0;
      w[t] = next;
    }
    if (!moved) continue;
    for (index_t i = 0; i < d; ++i) vec::axpy(-p_.G[j * d + i], step_.data(), R_.data() + i * k, k);
  }
}

double BlockDescent::relative_gap() const {
  const index_t d = p_.d, k = p_.k;
  double with_q = 0, with_r = 0, penalty = 0, scale = 1, conjugate = 0;
  for (index_t j = 0; j < d; ++j) {
    const double *w = W_.data() + j * k, *r = R_.data() + j * k, *q = p_.Q + j * k;
    const double l1 = strength_ * p_.l1[j], l2 = strength_ * p_.l2[j];
    const double size = vec::dot(w, w, k), steep = std::sqrt(vec::dot(r, r, k));
    with_q += vec::dot(w, q, k);
    with_r += vec::dot(w, r, k);
    penalty += l1 * std::sqrt(size) + 0.5 * l2 * size;
    if (l2 > 0)
      conjugate += std::pow(std::max(steep - l1, 0.0), 2) / (2.0 * l2);
    else if (steep > l1)
      scale = std::min(scale, l1 / steep);
  }
  if (scale < 1 && conjugate > 0) {  // rows with and without a ridge: scale the residuals of the rows with one
    conjugate = 0;
    for (index_t j = 0; j < d; ++j) {
      const double *r = R_.data() + j * k, l2 = strength_ * p_.l2[j];
      const double excess = scale * std::sqrt(vec::dot(r, r, k)) - strength_ * p_.l1[j];
      if (l2 > 0) conjugate += std::pow(std::max(excess, 0.0), 2) / (2.0 * l2);
    }
  }
  const double errors = std::max(p_.s - with_q - with_r, 0.0);
  const double primal = 0.5 * errors + penalty;
  const double dual = scale * (p_.s - with_q) - 0.5 * scale * scale * errors - conjugate;
  return (primal - dual) / std::max(primal, 1e-300);
}

BlockSolution BlockDescent::solve(double strength, double tol, int max_iter, Monitor& monitor) {
  strength_ = strength;
  BlockSolution out;
  while (!(out.converged = relative_gap() <= tol) && out.iterations < max_iter) {
    round();
    ++out.iterations;
    monitor.poll();
  }
  return out;
}

}  // namespace hinge
