// The end game of the multiclass support vector machine: a proximal point method whose steps are found by Newton's.
//
//   outer   p <- argmax over simplices of  dual(p) - sigma/2 sum_i c_i |p_i - q_i|^2,     q the last p; sigma falls
//   inner   its dual, min_W 1/2 |W|^2 + sum_i c_i [ max_p p.(D_i + s_i) - sigma/2 |p - q_i|^2 - s_iy ],  is smooth,
//   with
//             p_i(W)    = the nearest point of the simplex to q_i + (D_i + s_i) / sigma
//             gradient  = W - V(p(W)),     V(p) = sum_i c_i x_i (e_y - p_i)'
//             Hessian   = I + sum_{j<k} G_jk (x) (e_j - e_k)(e_j - e_k)'
//             G_jk      = sum of c_i / (sigma |S_i|) x_i x_i' over the rows that hold both j and k in their support S_i
//   gap     sum_i c_i [ max_j (D_ij + s_ij) - p_i.(D_i + s_i) ] + 1/2 |W - V(p)|^2
//
// Near the optimum few rows hold two classes, about as many as there are weights, so the Hessian is cheap to build;
// where coordinate ascent creeps, a few dozen such steps end it. The classes' weights add up to zero, so the last class
// is left out of the system: its order is (classes - 1) times the columns.
// Li, Sun & Toh (2018), "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso problems".
#pragma once
#include <vector>

#include "multiclass/svm.hpp"

namespace hinge {

struct MulticlassNewtonResult {
  int steps = 0;
  bool stopped = false;  // by the caller
};

// The work of a few dozen steps, in passes of coordinate ascent over all rows; infinite where the matrix is too large.
double multiclass_newton_passes(const Rows& x, index_t classes);

// From dual coefficients p (rows x classes) on, which never leave the simplex, to the relative gap wanted. Steps are
// reported as iterations `before` + 1, ...; there are at most `most`.
MulticlassNewtonResult multiclass_newton(const Rows& x, const MulticlassSvmProblem& problem, double tolerance,
                                         int before, int most, std::vector<double>& p, Monitor& monitor);

}  // namespace hinge
