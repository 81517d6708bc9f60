#include "solvers/problem.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

namespace hinge {

void evaluate(const LinearProblem& p, const double* w, double b, bool curvature, Evaluation& out) {
  const index_t n = p.n();
  const auto shifted = [&](index_t begin, index_t end, double* z) {
    if (p.intercept)
      for (index_t i = begin; i < end; ++i) z[i - begin] += b;
    if (p.offset)
      for (index_t i = begin; i < end; ++i) z[i - begin] += p.offset[i];
  };
  if (p.loss.whole_arrays()) {
    p.X.matvec(w, out.z.data());
    shifted(0, n, out.z.data());
    out.risk = curvature ? p.loss.curvature(p.y, out.z.data(), p.c, out.u.data(), out.h.data(), n)
                         : p.loss.gradient(p.y, out.z.data(), p.c, out.u.data(), n);
    p.X.rmatvec(out.u.data(), out.g.data());
  } else {
    // Block sums are stored by their first row and added in order, so that the total does not depend on the threads.
    std::vector<std::pair<index_t, double>> sums;
    std::mutex mutex;
    p.X.fused(
        w,
        [&](index_t begin, index_t end, const double*, double* u) {
          double* z = out.z.data() + begin;
          shifted(begin, end, z);
          const double s = curvature
                               ? p.loss.curvature(p.y + begin, z, p.c + begin, u, out.h.data() + begin, end - begin)
                               : p.loss.gradient(p.y + begin, z, p.c + begin, u, end - begin);
          std::lock_guard lock(mutex);
          sums.emplace_back(begin, s);
        },
        out.z.data(), out.u.data(), out.g.data());
    std::sort(sums.begin(), sums.end());
    out.risk = 0;
    for (const auto& s : sums) out.risk += s.second;
  }
  out.gb = p.intercept ? sum_of(out.u) : 0.0;
}

double penalty_value(const Coordinates& penalty, const double* w, index_t d) {
  double total = 0;
  for (index_t j = 0; j < d; ++j) total += penalty.l1[j] * std::fabs(w[j]) + 0.5 * penalty.l2[j] * w[j] * w[j];
  return total;
}

}  // namespace hinge
