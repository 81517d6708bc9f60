// Sums of outer products, G = sum_i x_i x_i' for rows of up to some hundred numbers: the matrix of the normal
// equations.
//
// A rank-k update of so small a matrix is over before a general BLAS has hit its stride. Here rows are laid out in
// panels of 24 columns that stay in the first-level cache, and tiles of 8 x 24 of the lower triangle stay in registers
// while they are added up, which needs the 32 registers of AVX-512; elsewhere `OuterSum::suits` says no.
#pragma once
#include <vector>

#include "core/aligned.hpp"
#include "core/hot.hpp"

namespace hinge {

class OuterSum {
 public:
  static constexpr index_t kBlock = 128;  // rows that are added up at a time

  // Whether this is the way to add up rows of d numbers on this machine.
  static bool suits(index_t d);

  explicit OuterSum(index_t d);
  // Takes one more row: factor times the m numbers of `head` and the d - m of `tail`.
  void add(double factor, const double* head, index_t m, const double* tail);
  // G, d x d, of all rows taken: its lower triangle in column-major order (entry (i, j) with i >= j at j d + i).
  void finish(double* G);

 private:
  void flush();

  index_t d_, panels_, held_ = 0;
  std::vector<double, AlignedAllocator<double>> panel_, sum_;
};

}  // namespace hinge
