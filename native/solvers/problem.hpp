// The linear problem of the native solvers:
//
//   J(w, b) = sum_i l(y_i, z_i) c_i + sum_j omega_j(w_j),   z = X w + b + offset
//   omega_j(w) = l1_j |w| + (l2_j / 2) w^2 on [lower_j, upper_j]
//
// The arrays are borrowed. `offset` may be null.
#pragma once
#include <vector>

#include "core/aligned.hpp"
#include "core/design.hpp"
#include "core/pool.hpp"
#include "core/vec.hpp"
#include "problem/loss.hpp"

namespace hinge {

struct Coordinates {
  const double *l1, *l2, *lower, *upper;
};

struct LinearProblem {
  const Design& X;
  const double* y;
  const double* c;
  const double* offset;
  const Loss& loss;
  bool intercept;
  Coordinates penalty;

  index_t n() const { return X.rows(); }
  index_t d() const { return X.cols(); }
};

constexpr index_t kRows = 1 << 14;  // rows per parallel task, where a row is one number

// The sum of a vector with one number per row.
template <class Numbers>
double sum_of(const Numbers& x) {
  return sum_ranges(static_cast<index_t>(x.size()), kRows,
                    [&](index_t begin, index_t end) { return vec::sum(x.data() + begin, end - begin); });
}

// Thrown where sums are not finite: no comparison with NaN would end a loop.
inline constexpr const char* kOverflowed =
    "The fit overflowed: X, y or sample_weight has values too large, or too different in size, for floating point. "
    "Rescale them; StandardScaler does it for X.";

enum class Outcome { converged, max_iter, stalled, stopped, unbounded };

struct LinearSolution {
  std::vector<double> w;
  double b = 0;
  std::vector<double>
      dual;  // dual variables u_i = l'(z_i) (not multiplied by c_i); empty if the solver has none to offer
  int iterations = 0;
  Outcome outcome = Outcome::max_iter;
};

// The risk at (w, b) and the other results of one pass over X.
struct Evaluation {
  Unset<double> z, u, h;  // scores, c l', c l''; h only if curvature was computed
  std::vector<double> g;  // X'u: gradient of the risk in w
  double gb = 0;          // gradient in b
  double risk = 0;

  Evaluation(index_t n, index_t d) : z(n), u(n), h(n), g(d) {}
};

void evaluate(const LinearProblem& p, const double* w, double b, bool curvature, Evaluation& out);

double penalty_value(const Coordinates& penalty, const double* w, index_t d);

}  // namespace hinge
