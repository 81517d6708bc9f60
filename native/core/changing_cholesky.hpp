// The Cholesky factor of a symmetric positive definite matrix to which rows and columns are added and from which they
// are removed.
//
// For order k, adding a row costs k^2 operations instead of k^3 / 3, and so does removing one: without row and column r
// the trailing block of the matrix is L33 L33' + l l', where l is the part of column r below the diagonal, and one
// rotation per column updates the factor for l l' (Golub & Van Loan 2013, section 6.5.4).
#pragma once
#include <functional>
#include <vector>

#include "core/hot.hpp"

namespace hinge {

class ChangingCholesky {
 public:
  index_t order() const { return k_; }
  void clear() { k_ = 0; }
  void remove(index_t r);
  // Appends `count` rows: fill(j, i, out) writes column j of the matrix from row i >= j on. Returns false and clears
  // the factor if the matrix is not positive definite.
  bool append(index_t count, const std::function<void(index_t, index_t, double*)>& fill);
  // Overwrites x with the solution of (L L') x = x.
  void solve(double* x) const;

 private:
  void reserve(index_t order);

  index_t k_ = 0, ld_ = 0;
  std::vector<double> L_;  // column-major, columns ld apart; only the lower triangle is used
};

}  // namespace hinge
