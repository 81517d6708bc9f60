// Scores of rows for k classes or components, and the outputs derived from them.
//
//   linear        z_c = b_c + Σ_j W_jc t(x_j),  t the identity or [x > threshold]
//   categories    z_c = b_c + Σ_j T[start_j + x_j, c]
//   Gaussian      z_c = b_c − ½ ‖(x − μ_c) P_c‖²,  P_c diagonal or upper triangular: Σ_c⁻¹ = P_c P_c'
#pragma once
#include <algorithm>
#include <vector>

#include "core/blocks.hpp"
#include "core/design.hpp"
#include "core/pool.hpp"

namespace hinge {

enum class Output { joint, log_probability, probability, best, total };

struct Scores {
  std::vector<double> value;       // n x k, or n for the total log Σ exp z
  std::vector<std::int32_t> best;  // n
  bool finite = true;              // false if some row has no finite score
};

struct Linear {
  index_t k;
  const double* W;  // d x k
  const double* b;  // k
  const double* threshold;
};
Scores linear_scores(const Design& X, const Linear& model, Output output);  // dense or CSR

struct Categories {
  index_t k;
  const double* T;  // start[d] x k
  const double* b;
  const index_t* start;
};
// Dense X. The sum skips columns with unknown categories; `finite` is false if there are any.
Scores category_scores(const Design& X, const Categories& model, Output output);

struct Gaussians {
  index_t k, d;
  const double* b;     // k
  const double* mean;  // k x d
  const double* P;     // k x d, or k x d x d if full (upper triangles, row-major)
  bool full;
};
Scores gaussian_scores(const Design& X, const Gaussians& model, Output output);  // dense

// Scores of blocks of rows, with the buffers this needs. One per thread.
class GaussianBlock {
 public:
  GaussianBlock(const Gaussians& model, index_t rows);
  void operator()(Block x, index_t m, double* z);

 private:
  const Gaussians& g_;
  index_t group_ = 0;                            // components whitened at a time
  std::vector<double> whiten_, offset_, y_, x_;  // factors, kd, rows x (group d), rows x d
  std::vector<double> centre_;
};

// z (m x k) becomes exp(z − log Σ exp z); total_i = log Σ exp z_i.
void softmax_rows(double* z, index_t m, index_t k, double* total);

}  // namespace hinge
