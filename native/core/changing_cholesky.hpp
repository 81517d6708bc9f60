// The Cholesky factor of a symmetric positive definite matrix that gains and loses rows and columns.
//
// For order k, a new row costs k^2 operations instead of k^3 / 3, and so does one that leaves: without row and column r
// the rest of the matrix below is L33 L33' + l l', with l the part of column r below the diagonal, and a factor is
// brought up to date for l l' by one rotation per column (Golub & Van Loan 2013, section 6.5.4).
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
  // `count` more rows: fill(j, i, out) writes the matrix from row i >= j on in column j. False, and empty, if it is not
  // positive definite.
  bool append(index_t count, const std::function<void(index_t, index_t, double*)>& fill);
  // x becomes the solution of (L L') x = x.
  void solve(double* x) const;

 private:
  void reserve(index_t order);

  index_t k_ = 0, ld_ = 0;
  std::vector<double> L_;  // column-major, columns ld apart; only the lower triangle is used
};

}  // namespace hinge
