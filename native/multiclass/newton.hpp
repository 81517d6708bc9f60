// The final phase of the multiclass support vector machine: a proximal point method with Newton steps.
//
//   outer   p <- argmax over simplices of  dual(p) - sigma/2 sum_i c_i |p_i - q_i|^2,    q the last p; sigma decreases
//   inner   its dual, min_W 1/2 |W|^2 + sum_i c_i [ max_p p.(D_i + s_i) - sigma/2 |p - q_i|^2 - s_iy ],  is smooth,
//   with
//             p_i(W)    = the nearest point of the simplex to q_i + (D_i + s_i) / sigma
//             gradient  = W - V(p(W)),     V(p) = sum_i c_i x_i (e_y - p_i)'
//             Hessian   = I + sum_{j<k} G_jk (x) (e_j - e_k)(e_j - e_k)'
//             G_jk      = sum of c_i / (sigma |S_i|) x_i x_i' over the rows with both j and k in their support S_i
//   gap     sum_i c_i [ max_j (D_ij + s_ij) - p_i.(D_i + s_i) ] + 1/2 |W - V(p)|^2
//
// Near the optimum few rows have two classes in their support, about as many as there are weights, so the Hessian is
// cheap to form; where coordinate ascent is slow, a few dozen such steps reach the tolerance. The weights of the
// classes sum to zero, so the system omits the last class: its order is (classes - 1) times the columns. Li, Sun & Toh
// (2018), "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso problems".
#pragma once
#include <vector>

#include "multiclass/svm.hpp"

namespace hinge {

struct MulticlassNewtonResult {
  int steps = 0;
  bool stopped = false;  // by the caller
};

// The cost of a few dozen steps, in passes of coordinate ascent over all rows; infinite if the matrix is too large.
double multiclass_newton_passes(const Rows& x, index_t classes);

// Starts from dual coefficients p (rows x classes), which never leave the simplex, and runs to the relative gap
// `tolerance`. Steps are reported as iterations `before` + 1, ...; there are at most `most`.
MulticlassNewtonResult multiclass_newton(const Rows& x, const MulticlassSvmProblem& problem, double tolerance,
                                         int before, int most, std::vector<double>& p, Monitor& monitor);

}  // namespace hinge
