#include "solve/quadratic.hpp"

#include <algorithm>
#include <cmath>

#include "core/blas.hpp"
#include "core/pool.hpp"
#include "core/vec.hpp"

namespace hinge {
namespace {

constexpr int kSupportEpochs = 3;  // passes over the support between Newton steps

double sparse_dot(const Columns& X, index_t j, const double* v) {
  double s = 0;
  for (index_t e = X.start[j]; e < X.start[j + 1]; ++e) s += X.value[e] * v[X.row[e]];
  return s;
}

// One pass over the listed coordinates; returns the largest slope it found unbalanced, in units of the slope.
template <class Q>
double epoch(Q& q, const std::vector<CoordinatePenalty>& penalty, const std::vector<index_t>& order,
             std::vector<double>& w, double& b, bool intercept) {
  double worst = 0;
  for (const index_t j : order) {
    const double bend = q.bend(j), next = penalty[j].minimiser(w[j], q.slope(j), bend);
    const double step = next - w[j];
    if (step == 0) continue;
    q.move(j, step);
    w[j] = next;
    worst = std::max(worst, std::fabs(step) * (bend + penalty[j].l2));
  }
  if (intercept) {
    const index_t m = static_cast<index_t>(w.size());
    const double bend = q.bend(m), step = bend > 0 ? -q.slope(m) / bend : 0.0;
    if (step != 0) q.move(m, step);
    b += step;
    worst = std::max(worst, std::fabs(step) * bend);
  }
  return worst;
}

// The Newton step on the weights where omega is smooth. Weights it would carry across zero or a bound stop there; if
// that makes the model worse, the whole step is shortened to the first such crossing instead. True if none crossed.
template <class Q>
bool polish(Q& q, const std::vector<CoordinatePenalty>& penalty, std::vector<double>& w, double& b, bool intercept) {
  const index_t m = static_cast<index_t>(w.size());
  std::vector<index_t> chosen;
  std::vector<double> slope, l2;
  for (index_t j = 0; j < m; ++j)
    if (penalty[j].smooth_at(w[j])) {
      chosen.push_back(j);
      const double sign = w[j] > 0 ? 1.0 : (w[j] < 0 ? -1.0 : 0.0);
      slope.push_back(q.slope(j) + penalty[j].l2 * w[j] + penalty[j].l1 * sign);
      l2.push_back(penalty[j].l2);
    }
  if (intercept) {
    chosen.push_back(m);
    slope.push_back(q.slope(m));
    l2.push_back(0.0);
  }
  const std::size_t k = chosen.size();
  std::vector<double> step(k);
  for (std::size_t a = 0; a < k; ++a) step[a] = -slope[a];
  if (k == 0 || !q.newton(chosen, l2, step)) return false;

  std::vector<double> cut = step;
  double fraction = 1.0;
  for (std::size_t a = 0; a < k; ++a) {
    if (chosen[a] == m) continue;
    const CoordinatePenalty& p = penalty[chosen[a]];
    const double now = w[chosen[a]], next = now + step[a];
    double edge = next;
    if (p.l1 > 0 && now * next < 0) edge = 0.0;
    edge = std::clamp(edge, p.lower, p.upper);
    if (edge == next) continue;
    cut[a] = edge - now;
    fraction = std::min(fraction, cut[a] / step[a]);
  }
  // On these coordinates, with these signs, the model is slope'v + 1/2 v'(H + L2)v.
  if (fraction < 1.0 && !(q.change(chosen, l2, slope, cut) < 0))
    for (std::size_t a = 0; a < k; ++a) cut[a] = fraction * step[a];
  for (std::size_t a = 0; a < k; ++a) {
    if (cut[a] == 0) continue;
    q.move(chosen[a], cut[a]);
    (chosen[a] == m ? b : w[chosen[a]]) += cut[a];
  }
  return fraction == 1.0;
}

template <class Q>
double worst_violation(const Q& q, const std::vector<CoordinatePenalty>& penalty, const std::vector<double>& w,
                       bool intercept) {
  double worst = intercept ? std::fabs(q.slope(static_cast<index_t>(w.size()))) : 0.0;
  for (std::size_t j = 0; j < w.size(); ++j)
    worst = std::max(worst, penalty[j].violation(w[j], q.slope(static_cast<index_t>(j))));
  return worst;
}

}  // namespace

void GramQuadratic::move(index_t j, double step) { vec::axpy(step, G_.data() + j * ld_, q_.data(), m_ + 1); }

bool GramQuadratic::newton(const std::vector<index_t>& chosen, const std::vector<double>& l2,
                           std::vector<double>& step) const {
  const index_t k = static_cast<index_t>(chosen.size());
  std::vector<double> A(k * k);
  double trace = 0;
  for (index_t a = 0; a < k; ++a) {
    const double* row = G_.data() + chosen[a] * ld_;
    for (index_t b = 0; b < k; ++b) A[a * k + b] = row[chosen[b]];
    A[a * k + a] += l2[a];
    trace += A[a * k + a];
  }
  for (index_t a = 0; a < k; ++a) A[a * k + a] += 1e-13 * trace / static_cast<double>(k);
  if (!blas::potrf('L', k, A.data(), k)) return false;
  blas::potrs('L', k, 1, A.data(), k, step.data(), k);
  return true;
}

double GramQuadratic::change(const std::vector<index_t>& chosen, const std::vector<double>& l2,
                             const std::vector<double>& slope, const std::vector<double>& v) const {
  double total = 0;
  for (std::size_t a = 0; a < chosen.size(); ++a) {
    const double* row = G_.data() + chosen[a] * ld_;
    double Av = l2[a] * v[a];
    for (std::size_t b = 0; b < chosen.size(); ++b) Av += row[chosen[b]] * v[b];
    total += v[a] * (slope[a] + 0.5 * Av);
  }
  return total;
}

DirectQuadratic::DirectQuadratic(const Columns& X, const std::vector<double>& h, std::vector<double> r)
    : X_(X), h_(h), r_(std::move(r)), hx_(X.sparse ? X.value.size() : X.dense.size()), bend_(X.cols + 1, 0.0) {
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
      bend_[j] = s;
    }
  });
  bend_[X.cols] = vec::sum(h.data(), X.rows);
}

double DirectQuadratic::slope(index_t j) const {
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

// out = A v for the chosen coordinates, A = X'HX, with z as scratch.
void DirectQuadratic::apply(const std::vector<index_t>& chosen, const std::vector<double>& v, std::vector<double>& z,
                            std::vector<double>& out) const {
  std::fill(z.begin(), z.end(), 0.0);
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    const index_t j = chosen[k];
    if (j == X_.cols)
      vec::axpy(v[k], h_.data(), z.data(), X_.rows);
    else if (X_.sparse)
      for (index_t e = X_.start[j]; e < X_.start[j + 1]; ++e) z[X_.row[e]] += v[k] * hx_[e];
    else
      vec::axpy(v[k], hx_.data() + j * X_.rows, z.data(), X_.rows);
  }
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    const index_t j = chosen[k];
    out[k] = j == X_.cols ? vec::sum(z.data(), X_.rows)
             : X_.sparse  ? sparse_dot(X_, j, z.data())
                          : vec::dot(X_.dense.data() + j * X_.rows, z.data(), X_.rows);
  }
}

double DirectQuadratic::change(const std::vector<index_t>& chosen, const std::vector<double>& l2,
                               const std::vector<double>& slope, const std::vector<double>& v) const {
  std::vector<double> z(X_.rows), Av(chosen.size());
  apply(chosen, v, z, Av);
  double total = 0;
  for (std::size_t a = 0; a < chosen.size(); ++a) total += v[a] * (slope[a] + 0.5 * (Av[a] + l2[a] * v[a]));
  return total;
}

// Conjugate gradients with the diagonal as preconditioner; `step` holds the right-hand side and receives the answer.
bool DirectQuadratic::newton(const std::vector<index_t>& chosen, const std::vector<double>& l2,
                             std::vector<double>& step) const {
  const std::size_t k = chosen.size();
  std::vector<double> residual = step, x(k, 0.0), s(k), d(k), Ad(k), z(X_.rows);
  const auto precondition = [&] {
    for (std::size_t a = 0; a < k; ++a) s[a] = residual[a] / (bend_[chosen[a]] + l2[a] + 1e-300);
  };
  precondition();
  d = s;
  double rs = 0;
  for (std::size_t a = 0; a < k; ++a) rs += residual[a] * s[a];
  const double target = 1e-6 * rs;
  for (int it = 0; it < 30 && rs > target; ++it) {
    apply(chosen, d, z, Ad);
    double dAd = 0;
    for (std::size_t a = 0; a < k; ++a) {
      Ad[a] += l2[a] * d[a];
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
  return true;
}

template <class Q>
int minimise_quadratic(Q& q, const std::vector<CoordinatePenalty>& penalty, std::vector<double>& w, double& b,
                       const QuadraticOptions& options) {
  const index_t m = static_cast<index_t>(w.size());
  std::vector<index_t> all(m), support;
  for (index_t j = 0; j < m; ++j) all[j] = j;
  int epochs = 0;
  // A warm start has nearly the right support: begin with the step that settles it.
  if (std::any_of(w.begin(), w.end(), [](double x) { return x != 0; })) polish(q, penalty, w, b, options.intercept);
  while (epochs < options.max_epochs) {
    ++epochs;
    // A pass over everything finds the support; passes over the support alone bring its signs close to right.
    if (epoch(q, penalty, all, w, b, options.intercept) <= options.tol) break;
    support.clear();
    for (index_t j = 0; j < m; ++j)
      if (w[j] != 0) support.push_back(j);
    for (int inner = 0; inner < kSupportEpochs && epochs < options.max_epochs; ++inner) {
      ++epochs;
      if (epoch(q, penalty, support, w, b, options.intercept) <= 0.3 * options.tol) break;
    }
    polish(q, penalty, w, b, options.intercept);
    if (worst_violation(q, penalty, w, options.intercept) <= options.tol) break;
  }
  return epochs;
}

template int minimise_quadratic(GramQuadratic&, const std::vector<CoordinatePenalty>&, std::vector<double>&, double&,
                                const QuadraticOptions&);
template int minimise_quadratic(DirectQuadratic&, const std::vector<CoordinatePenalty>&, std::vector<double>&, double&,
                                const QuadraticOptions&);

void working_gram(const Columns& X, const std::vector<double>& h, index_t from, bool intercept, std::vector<double>& G,
                  index_t ld) {
  const index_t m = X.cols, n = X.rows, fresh = m - from;
  if (X.sparse) {
    const index_t parts = parts_for(fresh * (X.start[m] + 1), 1 << 16);
    parallel_for(parts, [&](index_t p) {
      std::vector<double> dense(n, 0.0);
      for (index_t j = from + range_begin(fresh, parts, p); j < from + range_begin(fresh, parts, p + 1); ++j) {
        for (index_t e = X.start[j]; e < X.start[j + 1]; ++e) dense[X.row[e]] += h[X.row[e]] * X.value[e];
        for (index_t k = 0; k < m; ++k) G[j * ld + k] = sparse_dot(X, k, dense.data());
        for (index_t e = X.start[j]; e < X.start[j + 1]; ++e) dense[X.row[e]] = 0.0;
      }
    });
  } else {
    // h times the fresh columns, then products of tiles; tiles are a fixed partition whatever the threads.
    std::vector<double> scaled(n * fresh);
    const index_t pieces = parts_for(n * fresh, 1 << 14);
    parallel_for(pieces, [&](index_t p) {
      for (index_t j = range_begin(fresh, pieces, p); j < range_begin(fresh, pieces, p + 1); ++j)
        for (index_t i = 0; i < n; ++i) scaled[j * n + i] = h[i] * X.dense[(from + j) * n + i];
    });
    constexpr index_t tile = 128;
    const index_t rows = (m + tile - 1) / tile, cols = (fresh + tile - 1) / tile;
    parallel_for(rows * cols, [&](index_t t) {
      const index_t r = t % rows * tile, c = t / rows * tile;
      if (r + tile <= from + c && r >= from) return;  // the mirror image of a tile below
      const index_t nr = std::min(tile, m - r), nc = std::min(tile, fresh - c);
      blas::gemm('T', 'N', nr, nc, n, 1.0, X.dense.data() + r * n, n, scaled.data() + c * n, n, 0.0,
                 G.data() + (from + c) * ld + r, ld);
    });
    for (index_t j = from; j < m; ++j)
      for (index_t k = from; k < j; ++k) {
        // Inside the fresh block every pair was computed in at least one of the two tiles; the lower one counts.
        G[j * ld + k] = G[k * ld + j];
      }
  }
  for (index_t j = from; j < m; ++j)
    for (index_t k = 0; k < from; ++k) G[k * ld + j] = G[j * ld + k];
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
