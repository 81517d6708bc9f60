// Sufficient statistics of generative classifiers: weights, sums and squares of every column within every class, in one
// pass.
//
// codes are 0 … k−1, one per row; w may be null (all ones). The pieces of a sum depend only on the shape and are added
// in order, so results have the same bits for any number of threads.
#pragma once
#include <vector>

#include "core/design.hpp"

namespace hinge {

struct ClassMoments {
  std::vector<double> weight;  // k
  std::vector<double> mean;    // k x d
  std::vector<double> square;  // k x d: Σ w (x − mean)²
};
// Blocks of rows are centred at their own class means and merged (Chan, Golub & LeVeque 1983), so a large common offset
// loses no digits. Sparse storages take three passes.
ClassMoments class_moments(const Design& X, const std::int32_t* codes, const double* w, index_t k);

struct ClassSums {
  std::vector<double> weight;  // k
  std::vector<double> sum;     // k x d: Σ w x, or Σ w [x > threshold]
  double least;                // the smallest entry
};
ClassSums class_sums(const Design& X, const std::int32_t* codes, const double* w, index_t k, const double* threshold);

// Column j of a dense X has categories 0 … start[j+1] − start[j] − 1; row start[j] + v of the result (start[d] x k) is
// the weight of category v in each class. Entries outside this range (unknown categories) are skipped.
std::vector<double> class_categories(const Design& X, const std::int32_t* codes, const double* w, index_t k,
                                     const index_t* start);

// Σ w (x − mean_y)(x − mean_y)' over all rows (pooled, d x d) or within each class (k x d x d). Dense X.
std::vector<double> class_scatter(const Design& X, const std::int32_t* codes, const double* w, index_t k,
                                  const double* mean, bool pooled);

}  // namespace hinge
