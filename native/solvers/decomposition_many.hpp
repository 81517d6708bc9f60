// Many small duals (decomposition.hpp), each over some of the points of one kernel matrix, with one variable per point.
//
// Problem p has the points rows[p][0 ... length[p]); row p of each table holds its data. Each problem is solved as a
// single batch: pairs of variables until the optimality condition holds to tol[p].
//
// The problems are independent, so results do not depend on the number of threads.
#pragma once
#include "core/hot.hpp"

namespace hinge {

struct ManyDuals {
  const double* values;  // n x n
  index_t n, count, width;
  const index_t *rows, *length;
  const double *sign, *target, *upper;
  int groups;
};

struct ManySolutions {
  double *alpha, *bias, *rho, *violation;  // alpha: in, the start; out, the solution
  index_t* steps;
};

void decompose_many(const ManyDuals& problems, const double* tol, index_t max_steps, const ManySolutions& out);

// scores[p][i] = sum_j K(i, j) coefficients[p][j] over the points of problem p.
void scores_of_many(const ManyDuals& problems, const double* coefficients, double* scores);

}  // namespace hinge
