// One EM pass for a mixture of Gaussians: responsibilities, and the moments for the next estimates.
//
// With the current components (class_scores.hpp, b_c = log π_c + log|P_c| − (d/2) log 2π):
//
//   r_ic  = exp(z_ic − log Σ_c exp z_ic)            in log space
//   N_c   = Σ w_i r_ic
//   δ_c   = Σ w_i r_ic (x_i − μ_c)                  the mean moves by δ_c / N_c
//   S_c   = Σ w_i r_ic (x_i − μ_c)(x_i − μ_c)'      about the old mean: no digits lost to a common offset
//
// Responsibilities are used block by block as they are computed; the n x k matrix is never stored.
#pragma once
#include <vector>

#include "generative/class_scores.hpp"

namespace hinge {

struct MixtureMoments {
  double likelihood;           // Σ w_i log Σ_c exp z_ic (hard: Σ w_i max_c z_ic)
  std::vector<double> weight;  // k
  std::vector<double> shift;   // k x d
  std::vector<double> square;  // k x d x d, or its diagonals k x d
};

// `hard`: each row belongs to its best component only (with P = 1 and b = 0 this is a step of k-means).
MixtureMoments mixture_moments(const Design& X, const double* w, const Gaussians& model, bool hard);

}  // namespace hinge
