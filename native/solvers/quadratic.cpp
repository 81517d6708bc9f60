#include "solvers/quadratic.hpp"

#include <algorithm>
#include <cmath>

#include "core/blas.hpp"
#include "core/cholesky.hpp"
#include "core/pool.hpp"
#include "core/vec.hpp"

namespace hinge {
namespace {

constexpr int kCloseEpochs = 3;
constexpr std::size_t kChanges = 8;  // the factor is recomputed if more than one in this many coordinates changes

double sparse_dot(const Columns& X, index_t j, const double* v) {
  double s = 0;
  for (index_t e = X.start[j]; e < X.start[j + 1]; ++e) s += X.value[e] * v[X.row[e]];
  return s;
}

// The lower triangle of A = X'Y (columns of n entries), tile by tile; the tiles do not depend on the number of threads.
void lower_products(index_t rows, index_t cols, index_t n, const double* X, const double* Y, double* A, index_t ld) {
  constexpr index_t tile = 256;
  std::vector<std::pair<index_t, index_t>> tiles;
  for (index_t c = 0; c < cols; c += tile)
    for (index_t r = c; r < rows; r += tile) tiles.emplace_back(r, c);
  parallel_for(static_cast<index_t>(tiles.size()), [&](index_t t) {
    const auto [r, c] = tiles[t];
    blas::gemm('T', 'N', std::min(tile, rows - r), std::min(tile, cols - c), n, 1.0, X + r * n, n, Y + c * n, n, 0.0,
               A + c * ld + r, ld);
  });
}

// One pass over the listed coordinates; returns the largest stationarity residual it found.
template <class Q>
double epoch(Q& q, const std::vector<CoordinatePenalty>& penalty, const std::vector<index_t>& order,
             std::vector<double>& w, double& b, bool intercept) {
  double worst = 0;
  for (const index_t j : order) {
    const double curvature = q.curvature(j), next = penalty[j].minimiser(w[j], q.gradient(j), curvature);
    const double step = next - w[j];
    if (step == 0) continue;
    q.move(j, step);
    w[j] = next;
    worst = std::max(worst, std::fabs(step) * (curvature + penalty[j].l2));
  }
  if (intercept) {
    const index_t m = static_cast<index_t>(w.size());
    const double curvature = q.curvature(m), step = curvature > 0 ? -q.gradient(m) / curvature : 0.0;
    if (step != 0) q.move(m, step);
    b += step;
    worst = std::max(worst, std::fabs(step) * curvature);
  }
  return worst;
}

// The best length of a Newton step, and the change of the model, when weights may change sign along it. With gradient'v
// = -Q and v'Av = Q the model changes by -Q t + Q t^2 / 2, plus 2 l1 |v_j| (t - t_j) beyond the point t_j where w_j
// crosses zero: a convex piecewise quadratic, minimised exactly.
struct Reach {
  double t, change;
};

Reach along(double Q, std::vector<std::pair<double, double>> kinks, double most) {
  std::sort(kinks.begin(), kinks.end());
  // Between kinks the derivative is -Q + Q t + up.
  double t = 0, value = 0, up = 0;
  for (std::size_t k = 0; k <= kinks.size(); ++k) {
    const double end = std::min(most, k < kinks.size() ? kinks[k].first : most);
    const double stationary = Q > 0 ? (Q - up) / Q : 0.0, stop = std::clamp(stationary, t, end);
    value += (up - Q) * (stop - t) + 0.5 * Q * (stop * stop - t * t);
    t = stop;
    if (t < end || end == most) break;
    up += kinks[k].second;
  }
  return {t, value};
}

// The Newton step on the weights at which omega is smooth, in the better of two forms: weights that would cross zero or
// a bound stop there, or the full step is scaled to its best length. True if no weight crossed.
template <class Q>
bool polish(Q& q, const std::vector<CoordinatePenalty>& penalty, std::vector<double>& w, double& b, bool intercept) {
  const index_t m = static_cast<index_t>(w.size());
  std::vector<index_t> which, crossing;
  std::vector<double> gradient, l2;
  for (index_t j = 0; j < m; ++j)
    if (penalty[j].smooth_at(w[j])) {
      which.push_back(j);
      const double sign = w[j] > 0 ? 1.0 : (w[j] < 0 ? -1.0 : 0.0);
      gradient.push_back(q.gradient(j) + penalty[j].l2 * w[j] + penalty[j].l1 * sign);
      l2.push_back(penalty[j].l2);
    }
  if (intercept) {
    which.push_back(m);
    gradient.push_back(q.gradient(m));
    l2.push_back(0.0);
  }
  const std::size_t k = which.size();
  std::vector<double> step(k), delta(k, 0.0);
  for (std::size_t a = 0; a < k; ++a) step[a] = -gradient[a];
  if (k == 0 || !q.newton(which, l2, step)) return false;

  std::vector<std::pair<double, double>> kinks;
  double most = 1.0, Q_ = 0.0;
  for (std::size_t a = 0; a < k; ++a) {
    Q_ -= gradient[a] * step[a];
    if (which[a] == m) continue;
    const CoordinatePenalty& p = penalty[which[a]];
    const double now = w[which[a]], next = now + step[a];
    double edge = next;
    if (p.l1 > 0 && now * next < 0) {
      edge = 0.0;
      kinks.emplace_back(-now / step[a], 2.0 * p.l1 * std::fabs(step[a]));
    }
    const double inside = std::clamp(next, p.lower, p.upper);
    if (inside != next) most = std::min(most, (inside - now) / step[a]);
    edge = std::clamp(edge, p.lower, p.upper);
    if (edge == next) continue;
    crossing.push_back(static_cast<index_t>(a));
    delta[a] = edge - next;
  }
  if (!crossing.empty()) {
    // The step v solves A v = -gradient, so the model changes under v + delta by (gradient'(v+delta) +
    // delta'A(v+delta)) / 2.
    std::vector<double> cut(k);
    double change = 0;
    for (std::size_t a = 0; a < k; ++a) {
      cut[a] = step[a] + delta[a];
      change += gradient[a] * cut[a];
    }
    change = 0.5 * (change + q.product(which, l2, crossing, delta, cut));
    const Reach reach = along(Q_, std::move(kinks), most);
    if (change < reach.change)
      step.swap(cut);
    else
      for (double& v : step) v *= reach.t;
  }
  q.move(which, step);
  for (std::size_t a = 0; a < k; ++a) {
    double& x = which[a] == m ? b : w[which[a]];
    x += step[a];
    // A weight that was to stop at zero must be exactly zero.
    if (which[a] != m && std::fabs(x) <= 1e-15 * std::fabs(step[a])) x = 0.0;
  }
  return crossing.empty();
}

template <class Q>
double worst_violation(const Q& q, const std::vector<CoordinatePenalty>& penalty, const std::vector<double>& w,
                       bool intercept) {
  double worst = intercept ? std::fabs(q.gradient(static_cast<index_t>(w.size()))) : 0.0;
  for (std::size_t j = 0; j < w.size(); ++j)
    worst = std::max(worst, penalty[j].violation(w[j], q.gradient(static_cast<index_t>(j))));
  return worst;
}

}  // namespace

void GramQuadratic::move(index_t j, double step) { vec::axpy(step, G_.data() + j * ld_, q_.data(), m_ + 1); }

void GramQuadratic::move(const std::vector<index_t>& which, const std::vector<double>& v) {
  const index_t parts = parts_for(static_cast<index_t>(which.size()) * (m_ + 1), 1 << 15);
  parallel_for(parts, [&](index_t p) {
    const index_t lo = range_begin(m_ + 1, parts, p), hi = range_begin(m_ + 1, parts, p + 1);
    for (std::size_t a = 0; a < which.size(); ++a)
      if (v[a] != 0) vec::axpy(v[a], G_.data() + which[a] * ld_ + lo, q_.data() + lo, hi - lo);
  });
}

bool GramQuadratic::newton(const std::vector<index_t>& which, const std::vector<double>& l2,
                           std::vector<double>& step) {
  if (!update_factor(which, l2)) return false;
  std::vector<double> by_coordinate(m_ + 1);
  for (std::size_t a = 0; a < which.size(); ++a) by_coordinate[which[a]] = step[a];
  std::vector<double> x;
  for (const index_t j : factor_.which) x.push_back(by_coordinate[j]);
  factor_.cholesky.solve(x.data());
  for (std::size_t t = 0; t < x.size(); ++t) by_coordinate[factor_.which[t]] = x[t];
  for (std::size_t a = 0; a < which.size(); ++a) step[a] = by_coordinate[which[a]];
  return true;
}

// Updates the factor one coordinate at a time if few change, and recomputes it otherwise.
bool GramQuadratic::update_factor(const std::vector<index_t>& which, const std::vector<double>& l2) {
  std::vector<double> ridge(m_ + 1, -1.0);  // of the coordinates not yet in the factor
  for (std::size_t a = 0; a < which.size(); ++a) ridge[which[a]] = l2[a];
  std::vector<index_t> leaving;
  for (std::size_t t = 0; t < factor_.which.size(); ++t) {
    double& wanted = ridge[factor_.which[t]];
    if (wanted == factor_.l2[t])
      wanted = -1.0;
    else
      leaving.push_back(static_cast<index_t>(t));
  }
  const std::size_t staying = factor_.which.size() - leaving.size(), joining = which.size() - staying;
  if (kChanges * (leaving.size() + joining) > which.size()) {
    factor_.forget();
    for (std::size_t a = 0; a < which.size(); ++a) ridge[which[a]] = l2[a];
    leaving.clear();
  }
  for (auto t = leaving.rbegin(); t != leaving.rend(); ++t) {
    factor_.cholesky.remove(*t);
    factor_.which.erase(factor_.which.begin() + *t);
    factor_.l2.erase(factor_.l2.begin() + *t);
  }
  const index_t before = factor_.cholesky.order();
  for (const index_t j : which)
    if (ridge[j] >= 0) {
      factor_.which.push_back(j);
      factor_.l2.push_back(ridge[j]);
    }
  const index_t order = static_cast<index_t>(factor_.which.size());
  const auto fill = [&](index_t j, index_t from, double* out) {
    const double* row = G_.data() + factor_.which[j] * ld_;
    for (index_t i = from; i < order; ++i) out[i - from] = row[factor_.which[i]];
    if (from > j) return;
    const double own = out[0] + factor_.l2[j];
    out[0] = own + 1e-13 * (own > 0 ? own : 1.0);
  };
  if (factor_.cholesky.append(order - before, fill)) return true;
  factor_.forget();
  return false;
}

double GramQuadratic::product(const std::vector<index_t>& which, const std::vector<double>& l2,
                              const std::vector<index_t>& few, const std::vector<double>& delta,
                              const std::vector<double>& v) const {
  double total = 0;
  for (const index_t a : few) {
    const double* row = G_.data() + which[a] * ld_;
    double Av = l2[a] * v[a];
    for (std::size_t b = 0; b < which.size(); ++b) Av += row[which[b]] * v[b];
    total += delta[a] * Av;
  }
  return total;
}

DirectQuadratic::DirectQuadratic(const Columns& X, const Unset<double>& h, Unset<double> r, KeptFactor& factor)
    : X_(X),
      h_(h),
      r_(std::move(r)),
      hx_(X.sparse ? X.value.size() : X.dense.size()),
      curvature_(X.cols + 1, 0.0),
      factor_(factor) {
  const index_t parts = parts_for(static_cast<index_t>(hx_.size()), 1 << 14);
  parallel_for(parts, [&](index_t p) {
    for (index_t j = range_begin(X.cols, parts, p); j < range_begin(X.cols, parts, p + 1); ++j) {
      double s = 0;
      if (X.sparse) {
        for (index_t e = X.start[j]; e < X.start[j + 1]; ++e) {
          hx_[e] = h[X.row[e]] * X.value[e];
          s += hx_[e] * X.value[e];
        }
      } else {
        const double* x = X.dense.data() + j * X.rows;
        double* out = hx_.data() + j * X.rows;
        for (index_t i = 0; i < X.rows; ++i) {
          out[i] = h[i] * x[i];
          s += out[i] * x[i];
        }
      }
      curvature_[j] = s;
    }
  });
  curvature_[X.cols] = vec::sum(h.data(), X.rows);
}

double DirectQuadratic::gradient(index_t j) const {
  if (j == X_.cols) return vec::sum(r_.data(), X_.rows);
  return X_.sparse ? sparse_dot(X_, j, r_.data()) : vec::dot(X_.dense.data() + j * X_.rows, r_.data(), X_.rows);
}

void DirectQuadratic::move(index_t j, double step) {
  if (j == X_.cols)
    vec::axpy(step, h_.data(), r_.data(), X_.rows);
  else if (X_.sparse)
    for (index_t e = X_.start[j]; e < X_.start[j + 1]; ++e) r_[X_.row[e]] += step * hx_[e];
  else
    vec::axpy(step, hx_.data() + j * X_.rows, r_.data(), X_.rows);
}

void DirectQuadratic::move(const std::vector<index_t>& which, const std::vector<double>& v) {
  add(which, v, true, r_.data());
}

void DirectQuadratic::add(const std::vector<index_t>& which, const std::vector<double>& v, bool weighted,
                          double* z) const {
  const index_t n = X_.rows;
  for (std::size_t a = 0; a < which.size(); ++a) {
    const index_t j = which[a];
    if (v[a] == 0) continue;
    if (j == X_.cols) {
      for (index_t i = 0; i < n; ++i) z[i] += v[a] * (weighted ? h_[i] : 1.0);
    } else if (X_.sparse) {
      const double* x = weighted ? hx_.data() : X_.value.data();
      for (index_t e = X_.start[j]; e < X_.start[j + 1]; ++e) z[X_.row[e]] += v[a] * x[e];
    } else {
      vec::axpy(v[a], (weighted ? hx_.data() : X_.dense.data()) + j * n, z, n);
    }
  }
}

double DirectQuadratic::product(const std::vector<index_t>& which, const std::vector<double>& l2,
                                const std::vector<index_t>& few, const std::vector<double>& delta,
                                const std::vector<double>& v) const {
  std::vector<double> left(X_.rows, 0.0), right(X_.rows, 0.0), picked;
  std::vector<index_t> some;
  double total = 0;
  for (const index_t a : few) {
    some.push_back(which[a]);
    picked.push_back(delta[a]);
    total += delta[a] * l2[a] * v[a];
  }
  add(some, picked, false, left.data());
  add(which, v, true, right.data());
  return total + vec::dot(left.data(), right.data(), X_.rows);
}

bool DirectQuadratic::newton(const std::vector<index_t>& which, const std::vector<double>& l2,
                             std::vector<double>& step) {
  if (!X_.sparse && static_cast<index_t>(which.size()) <= 2 * X_.rows) return factorised(which, l2, step);
  conjugate_gradients(which, l2, step);
  return true;
}

// Dense columns: the Hessian in the chosen coordinates, tile by tile, and its Cholesky factor.
bool DirectQuadratic::factorised(const std::vector<index_t>& which, const std::vector<double>& l2,
                                 std::vector<double>& step) {
  const index_t n = X_.rows, k = static_cast<index_t>(which.size());
  std::vector<double> x(n * k), hx(n * k);
  const index_t pieces = parts_for(n * k, 1 << 14);
  parallel_for(pieces, [&](index_t p) {
    for (index_t a = range_begin(k, pieces, p); a < range_begin(k, pieces, p + 1); ++a) {
      const index_t j = which[a];
      const double* source = j == X_.cols ? h_.data() : hx_.data() + j * n;
      std::copy(source, source + n, hx.data() + a * n);
      if (j == X_.cols)
        std::fill(x.data() + a * n, x.data() + (a + 1) * n, 1.0);
      else
        std::copy(X_.dense.data() + j * n, X_.dense.data() + (j + 1) * n, x.data() + a * n);
    }
  });
  std::vector<double>& factor = factor_.scratch;
  factor_.forget();
  if (static_cast<index_t>(factor.size()) < k * k) factor.resize(k * k);
  lower_products(k, k, n, x.data(), hx.data(), factor.data(), k);
  for (index_t a = 0; a < k; ++a) {
    double& own = factor[a * k + a];
    own += l2[a];
    own += 1e-13 * own + 1e-300;
  }
  if (!cholesky(k, factor.data(), k)) return false;
  blas::potrs('L', k, 1, factor.data(), k, step.data(), k);
  return true;
}

// Conjugate gradients with the diagonal as preconditioner; `step` holds the right-hand side and receives the solution.
void DirectQuadratic::conjugate_gradients(const std::vector<index_t>& which, const std::vector<double>& l2,
                                          std::vector<double>& step) const {
  const std::size_t k = which.size();
  std::vector<double> residual = step, x(k, 0.0), s(k), d(k), Ad(k), z(X_.rows);
  const auto precondition = [&] {
    for (std::size_t a = 0; a < k; ++a) s[a] = residual[a] / (curvature_[which[a]] + l2[a] + 1e-300);
  };
  precondition();
  d = s;
  double rs = 0;
  for (std::size_t a = 0; a < k; ++a) rs += residual[a] * s[a];
  const double target = 1e-6 * rs;
  for (int it = 0; it < 30 && rs > target; ++it) {
    std::fill(z.begin(), z.end(), 0.0);
    add(which, d, true, z.data());
    double dAd = 0;
    for (std::size_t a = 0; a < k; ++a) {
      const index_t j = which[a];
      Ad[a] = l2[a] * d[a] + (j == X_.cols ? vec::sum(z.data(), X_.rows)
                              : X_.sparse  ? sparse_dot(X_, j, z.data())
                                           : vec::dot(X_.dense.data() + j * X_.rows, z.data(), X_.rows));
      dAd += d[a] * Ad[a];
    }
    if (!(dAd > 0)) break;
    const double alpha = rs / dAd;
    for (std::size_t a = 0; a < k; ++a) {
      x[a] += alpha * d[a];
      residual[a] -= alpha * Ad[a];
    }
    precondition();
    const double before = rs;
    rs = 0;
    for (std::size_t a = 0; a < k; ++a) rs += residual[a] * s[a];
    for (std::size_t a = 0; a < k; ++a) d[a] = s[a] + rs / before * d[a];
  }
  step = x;
}

template <class Q>
int minimise_quadratic(Q& q, const std::vector<CoordinatePenalty>& penalty, std::vector<double>& w, double& b,
                       const QuadraticOptions& options) {
  const index_t m = static_cast<index_t>(w.size());
  std::vector<index_t> all(m), support;
  for (index_t j = 0; j < m; ++j) all[j] = j;
  const int support_epochs = options.close ? std::min(kCloseEpochs, Q::kSupportEpochs) : Q::kSupportEpochs;
  int epochs = 0;
  // A warm start has nearly the right support: begin with the Newton step on it.
  if (Q::kPatience == 0 && std::any_of(w.begin(), w.end(), [](double x) { return x != 0; }))
    polish(q, penalty, w, b, options.intercept);
  for (int cycle = 1; epochs < options.max_epochs; ++cycle) {
    ++epochs;
    // A pass over all coordinates finds the support; passes over the support alone bring its signs close to the right
    // ones.
    if (epoch(q, penalty, all, w, b, options.intercept) <= options.tol) break;
    support.clear();
    for (index_t j = 0; j < m; ++j)
      if (w[j] != 0) support.push_back(j);
    for (int inner = 0; inner < support_epochs && epochs < options.max_epochs; ++inner) {
      ++epochs;
      if (epoch(q, penalty, support, w, b, options.intercept) <= 0.3 * options.tol) break;
    }
    if (cycle <= Q::kPatience) continue;
    polish(q, penalty, w, b, options.intercept);
    if (worst_violation(q, penalty, w, options.intercept) <= options.tol) break;
  }
  return epochs;
}

template int minimise_quadratic(GramQuadratic&, const std::vector<CoordinatePenalty>&, std::vector<double>&, double&,
                                const QuadraticOptions&);
template int minimise_quadratic(DirectQuadratic&, const std::vector<CoordinatePenalty>&, std::vector<double>&, double&,
                                const QuadraticOptions&);

namespace {

// out[f] += sum over the entries e of a row, from the first new column on, of h x_e x_f in row e of the triangle.
HINGE_HOT void add_row_pairs(const std::int32_t* rank, const double* value, index_t first, index_t end, double h,
                             index_t from, double* triangle) {
  const index_t skipped = from * (from + 1) / 2;
  for (index_t e = first; e < end; ++e) {
    const index_t r = rank[e];
    double* out = triangle + r * (r + 1) / 2 - skipped;
    const double hv = h * value[e];
    for (index_t f = 0; f <= e; ++f) out[rank[f]] += hv * value[f];
  }
}

// Sparse columns, row by row: the entries of a row in new columns times all its entries. Each part sums its own
// triangle.
void sparse_gram(ByRow& X, const Unset<double>& h, std::vector<double>& G, index_t ld) {
  const index_t m = X.cols, n = static_cast<index_t>(X.start.size()) - 1, from = X.from;
  const index_t skipped = from * (from + 1) / 2, size = m * (m + 1) / 2 - skipped;
  const index_t parts = parts_for(n, 256, 4);
  X.partial.resize(parts);
  parallel_for(parts, [&](index_t p) {
    X.partial[p].assign(size, 0.0);
    for (index_t i = range_begin(n, parts, p); i < range_begin(n, parts, p + 1); ++i) {
      const index_t begin = X.start[i], count = X.start[i + 1] - begin;
      if (h[i] == 0) continue;
      index_t first = 0;
      if (from > 0)
        first = std::lower_bound(X.rank.begin() + begin, X.rank.begin() + begin + count, from) - X.rank.begin() - begin;
      add_row_pairs(X.rank.data() + begin, X.value.data() + begin, first, count, h[i], from, X.partial[p].data());
    }
  });
  const index_t strips = parts_for(size, 1 << 15);
  parallel_for(strips, [&](index_t s) {
    for (index_t r = from + range_begin(m - from, strips, s); r < from + range_begin(m - from, strips, s + 1); ++r) {
      const index_t j = X.order[r];
      for (index_t q = 0; q <= r; ++q) {
        double sum = 0;
        for (const auto& part : X.partial) sum += part[r * (r + 1) / 2 - skipped + q];
        const index_t k = X.order[q];
        G[j * ld + k] = G[k * ld + j] = sum;
      }
    }
  });
}

}  // namespace

// Processes a range of rows at a time, so that the output stays in cache; entries of a column are in row order.
void by_row(const Columns& X, index_t from, ByRow& out) {
  out.cols = X.cols;
  out.from = from;
  out.pairs = 0;
  out.order.resize(X.cols);
  for (index_t j = 0; j < X.cols; ++j) out.order[j] = j;
  const auto fuller = [&](index_t a, index_t b) {
    const index_t ca = X.start[a + 1] - X.start[a], cb = X.start[b + 1] - X.start[b];
    return ca != cb ? ca > cb : a < b;
  };
  std::sort(out.order.begin(), out.order.begin() + from, fuller);
  std::sort(out.order.begin() + from, out.order.end(), fuller);
  out.start.assign(X.rows + 1, 0);
  out.rank.resize(X.row.size());
  out.value.resize(X.row.size());
  const index_t parts = parts_for(static_cast<index_t>(X.row.size()), 1 << 14, 32);
  std::vector<index_t> first(X.cols * parts);  // the position of each range of rows in each column
  std::vector<double> pairs(parts);
  parallel_for(parts, [&](index_t p) {
    const index_t lo = range_begin(X.rows, parts, p), hi = range_begin(X.rows, parts, p + 1);
    for (index_t j = 0; j < X.cols; ++j) {
      const auto begin = X.row.begin() + X.start[j], end = X.row.begin() + X.start[j + 1];
      index_t e = std::lower_bound(begin, end, lo) - X.row.begin();
      first[p * X.cols + j] = e;
      for (; e < X.start[j + 1] && X.row[e] < hi; ++e) ++out.start[X.row[e] + 1];
    }
    for (index_t i = lo; i < hi; ++i) {
      const double c = static_cast<double>(out.start[i + 1]);
      pairs[p] += 0.5 * c * c;
    }
  });
  for (const double x : pairs) out.pairs += x;
  for (index_t i = 0; i < X.rows; ++i) out.start[i + 1] += out.start[i];
  parallel_for(parts, [&](index_t p) {
    const index_t lo = range_begin(X.rows, parts, p), hi = range_begin(X.rows, parts, p + 1);
    std::vector<index_t> at(out.start.begin() + lo, out.start.begin() + hi);
    for (index_t r = 0; r < X.cols; ++r) {
      const index_t j = out.order[r];
      for (index_t e = first[p * X.cols + j]; e < X.start[j + 1] && X.row[e] < hi; ++e) {
        const index_t to = at[X.row[e] - lo]++;
        out.rank[to] = static_cast<std::int32_t>(r);
        out.value[to] = X.value[e];
      }
    }
  });
}

void working_gram(const Columns& X, ByRow& rows, const Unset<double>& h, index_t from, bool intercept,
                  std::vector<double>& G, index_t ld) {
  const index_t m = X.cols, n = X.rows, fresh = m - from;
  if (X.sparse) {
    sparse_gram(rows, h, G, ld);
  } else {
    // h times the new columns, multiplied by the old columns and then by each other.
    std::vector<double> scaled(n * fresh);
    const index_t pieces = parts_for(n * fresh, 1 << 14);
    parallel_for(pieces, [&](index_t p) {
      for (index_t j = range_begin(fresh, pieces, p); j < range_begin(fresh, pieces, p + 1); ++j)
        for (index_t i = 0; i < n; ++i) scaled[j * n + i] = h[i] * X.dense[(from + j) * n + i];
    });
    constexpr index_t tile = 256;
    const index_t rows = (from + tile - 1) / tile, cols = (fresh + tile - 1) / tile;
    parallel_for(rows * cols, [&](index_t t) {
      const index_t r = t % rows * tile, c = t / rows * tile;
      blas::gemm('T', 'N', std::min(tile, from - r), std::min(tile, fresh - c), n, 1.0, X.dense.data() + r * n, n,
                 scaled.data() + c * n, n, 0.0, G.data() + (from + c) * ld + r, ld);
    });
    lower_products(fresh, fresh, n, X.dense.data() + from * n, scaled.data(), G.data() + from * ld + from, ld);
    for (index_t j = from; j < m; ++j) {
      for (index_t k = from; k < j; ++k) G[j * ld + k] = G[k * ld + j];
      for (index_t k = 0; k < from; ++k) G[k * ld + j] = G[j * ld + k];
    }
  }
  for (index_t j = 0; j < m; ++j) {
    double edge = 0;
    if (intercept && X.sparse)
      edge = sparse_dot(X, j, h.data());
    else if (intercept)
      edge = vec::dot(X.dense.data() + j * n, h.data(), n);
    G[j * ld + m] = G[m * ld + j] = edge;
  }
  G[m * ld + m] = intercept ? vec::sum(h.data(), n) : 0.0;
}

}  // namespace hinge
