#include "solvers/proximal_newton.hpp"

#include <algorithm>
#include <cmath>

#include "core/blas.hpp"

namespace hinge {
namespace {

constexpr index_t kFirstSet = 128;         // smallest working set worth a pass over X
constexpr index_t kMostGram = 4000;        // larger working sets keep residuals instead of a Gram matrix
constexpr index_t kMostSparseGram = 1500;  // smaller, because several partial matrices are in memory

// omega*(g), and whether it is finite.
double conjugate(const CoordinatePenalty& p, double g) {
  const double excess = std::fabs(g) - p.l1;
  if (excess <= 1e-12 * p.l1) return 0.0;
  const double reach = g > 0 ? p.upper : -p.lower;
  const double far = p.l2 > 0 ? excess / p.l2 : 1e300;
  const double best = std::min(far, reach);
  return best >= 1e300 ? 1e300 : excess * best - 0.5 * p.l2 * best * best;
}

void append(Columns& a, const Columns& b) {
  a.cols += b.cols;
  if (a.sparse) {
    const index_t shift = a.start.back();
    for (std::size_t j = 1; j < b.start.size(); ++j) a.start.push_back(shift + b.start[j]);
    a.row.insert(a.row.end(), b.row.begin(), b.row.end());
    a.value.insert(a.value.end(), b.value.begin(), b.value.end());
  } else {
    a.dense.insert(a.dense.end(), b.dense.begin(), b.dense.end());
  }
  a.square.insert(a.square.end(), b.square.begin(), b.square.end());
}

// Keeps the columns at these places, in order.
void keep_columns(Columns& a, const std::vector<index_t>& places) {
  index_t to = 0, entries = 0;
  for (const index_t from : places) {
    if (a.sparse) {
      const index_t begin = a.start[from], end = a.start[from + 1];
      std::copy(a.row.begin() + begin, a.row.begin() + end, a.row.begin() + entries);
      std::copy(a.value.begin() + begin, a.value.begin() + end, a.value.begin() + entries);
      a.start[to] = entries;
      entries += end - begin;
    } else if (from != to) {
      std::copy(a.dense.begin() + from * a.rows, a.dense.begin() + (from + 1) * a.rows, a.dense.begin() + to * a.rows);
    }
    a.square[to++] = a.square[from];
  }
  a.cols = to;
  a.square.resize(to);
  if (a.sparse) {
    a.start[to] = entries;
    a.start.resize(to + 1);
    a.row.resize(entries);
    a.value.resize(entries);
  } else {
    a.dense.resize(to * a.rows);
  }
}

// z += X v for gathered columns.
void add_product(const Columns& X, const std::vector<double>& v, double* z) {
  if (X.sparse) {
    for (index_t j = 0; j < X.cols; ++j)
      if (v[j] != 0)
        for (index_t e = X.start[j]; e < X.start[j + 1]; ++e) z[X.row[e]] += v[j] * X.value[e];
    return;
  }
  const index_t parts = parts_for(X.rows * X.cols, 1 << 15);
  parallel_for(parts, [&](index_t p) {
    const index_t b = range_begin(X.rows, parts, p), e = range_begin(X.rows, parts, p + 1);
    for (index_t j = 0; j < X.cols; ++j)
      if (v[j] != 0) vec::axpy(v[j], X.dense.data() + j * X.rows + b, z + b, e - b);
  });
}

double column_gradient(const Columns& X, index_t j, const double* u) {
  if (!X.sparse) return vec::dot(X.dense.data() + j * X.rows, u, X.rows);
  double s = 0;
  for (index_t e = X.start[j]; e < X.start[j + 1]; ++e) s += X.value[e] * u[X.row[e]];
  return s;
}

}  // namespace

ProximalNewton::ProximalNewton(const LinearProblem& problem, bool constant_curvature, std::vector<double> w, double b)
    : p_(problem),
      penalty_(problem.penalty),
      constant_(constant_curvature),
      w_(std::move(w)),
      b_(b),
      at_(problem.n(), problem.d()),
      inside_(problem.d(), 0),
      violations_(problem.d()) {
  cols_.rows = problem.n();
  cols_.sparse = problem.X.sparse();
  cols_.start = {0};
}

// The inner loop keeps scores, gradients and curvature up to date, so only the first pass computes them.
void ProximalNewton::evaluate_all() {
  const index_t n = p_.n();
  if (!started_) {
    const bool zero = std::all_of(w_.begin(), w_.end(), [](double x) { return x == 0; });
    if (!zero) p_.X.matvec(w_.data(), at_.z.data());
    for (index_t i = 0; i < n; ++i) {
      if (zero) at_.z[i] = 0;
      at_.z[i] += (p_.intercept ? b_ : 0.0) + (p_.offset ? p_.offset[i] : 0.0);
    }
    refresh();
    started_ = true;
  }
  p_.X.rmatvec(at_.u.data(), at_.g.data());
  at_.gb = p_.intercept ? vec::sum(at_.u.data(), n) : 0.0;
}

// Updates risk, gradients and curvature at the current scores.
void ProximalNewton::refresh() {
  const index_t n = p_.n();
  if (p_.loss.whole_arrays()) {
    at_.risk = p_.loss.curvature(p_.y, at_.z.data(), p_.c, at_.u.data(), at_.h.data(), n);
    return;
  }
  const index_t parts = parts_for(n, 4096);
  std::vector<double> risk(parts);
  parallel_for(parts, [&](index_t q) {
    const index_t lo = range_begin(n, parts, q), hi = range_begin(n, parts, q + 1);
    risk[q] = p_.loss.curvature(p_.y + lo, at_.z.data() + lo, p_.c + lo, at_.u.data() + lo, at_.h.data() + lo, hi - lo);
  });
  at_.risk = 0;
  for (const double r : risk) at_.risk += r;
}

// Primal minus dual at the natural dual point, scaled into the domain of the conjugates. With a bias, dual variables
// whose sum is not zero give no bound: the bias's contribution is subtracted, and the gain of a Newton step of the bias
// added.
double ProximalNewton::gap(double primal) {
  const index_t n = p_.n(), d = p_.d();
  double scale = 1.0;
  for (index_t j = 0; j < d; ++j) {
    const CoordinatePenalty p = omega(j);
    const double g = -at_.g[j], reach = g > 0 ? p.upper : -p.lower;
    if (p.l2 == 0 && reach > 1e300 && std::fabs(g) > p.l1) scale = std::min(scale, p.l1 / std::fabs(g));
  }
  std::vector<double> u(n);
  for (index_t i = 0; i < n; ++i) u[i] = scale * at_.u[i];
  double dual = -p_.loss.conjugate(p_.y, u.data(), p_.c, n);
  if (p_.offset) dual += vec::dot(u.data(), p_.offset, n);
  for (index_t j = 0; j < d; ++j) dual -= conjugate(omega(j), -scale * at_.g[j]);
  if (!p_.intercept) return primal - dual;
  return primal - dual - scale * b_ * at_.gb + at_.gb * at_.gb / std::max(vec::sum(at_.h.data(), n), 1e-300);
}

void ProximalNewton::gather(const std::vector<index_t>& fresh) {
  if (fresh.empty()) return;
  rows_.cols = -1;
  for (const index_t j : fresh) inside_[j] = 1;
  set_.insert(set_.end(), fresh.begin(), fresh.end());
  append(cols_, p_.X.columns(fresh.data(), static_cast<index_t>(fresh.size())));
}

// Adds the features with the largest violations: as many as the set has nonzero weights, so that it at most doubles.
// When a path has just lowered the penalty, features that would violate their condition if their gradient grew as fast
// as the penalty fell join as well (the strong rule of Tibshirani et al. 2012): one pass over X then suffices for most
// penalties.
void ProximalNewton::grow() {
  const index_t d = p_.d();
  std::vector<index_t> fresh;
  index_t used = 0;
  for (index_t j = 0; j < d; ++j) {
    used += w_[j] != 0;
    const bool soon = !last_l1_.empty() && std::fabs(at_.g[j]) >= 2.0 * penalty_.l1[j] - last_l1_[j];
    if (!inside_[j] && (violations_[j] > 0 || w_[j] != 0 || soon)) fresh.push_back(j);
  }
  const index_t room = std::max(kFirstSet, used);
  if (static_cast<index_t>(fresh.size()) > room) {
    std::nth_element(fresh.begin(), fresh.begin() + room, fresh.end(), [&](index_t a, index_t b) {
      const bool wa = w_[a] != 0, wb = w_[b] != 0;
      if (wa != wb) return wa;
      const double ea = std::fabs(at_.g[a]) - penalty_.l1[a], eb = std::fabs(at_.g[b]) - penalty_.l1[b];
      if (violations_[a] != violations_[b]) return violations_[a] > violations_[b];
      return ea != eb ? ea > eb : a < b;
    });
    fresh.resize(room);
    std::sort(fresh.begin(), fresh.end());
  }
  gather(fresh);
}

// Drops columns with zero weights before the set grows again, once there are many of them.
void ProximalNewton::drop_idle() {
  std::vector<index_t> keep;
  for (std::size_t k = 0; k < set_.size(); ++k)
    if (w_[set_[k]] != 0) keep.push_back(static_cast<index_t>(k));
  const std::size_t idle = set_.size() - keep.size();
  if (idle < std::max<std::size_t>(kFirstSet, keep.size() / 2)) return;
  keep_columns(cols_, keep);
  factor_.forget();
  rows_.cols = -1;
  for (const index_t j : set_) inside_[j] = 0;
  index_t covered = 0;
  for (std::size_t a = 0; a < keep.size(); ++a) {
    set_[a] = set_[keep[a]];
    inside_[set_[a]] = 1;
    if (keep[a] >= gram_cols_) continue;
    const double* row = gram_.data() + keep[a] * gram_ld_;
    for (index_t b = 0; b <= covered; ++b) gram_[covered * gram_ld_ + b] = row[keep[b]];
    ++covered;
  }
  set_.resize(keep.size());
  gram_cols_ = covered;
  for (index_t a = 0; a < covered; ++a)
    for (index_t b = 0; b < a; ++b) gram_[b * gram_ld_ + a] = gram_[a * gram_ld_ + b];
}

// Allocates a Gram matrix of this order, keeping its entries. The bias's row and column come last, at a position that
// moves with the working set, and are rewritten each time.
void ProximalNewton::reserve_gram(index_t order) {
  if (order <= gram_ld_) return;
  const index_t ld = std::min(std::max(2 * gram_ld_, order), std::max(order, kMostGram + 1));
  std::vector<double> G(ld * ld, 0.0);
  for (index_t j = 0; j < gram_cols_; ++j)
    std::copy(gram_.begin() + j * gram_ld_, gram_.begin() + j * gram_ld_ + gram_cols_, G.begin() + j * ld);
  gram_.swap(G);
  gram_ld_ = ld;
}

double ProximalNewton::objective_at(double step, const std::vector<double>& dz, const std::vector<double>& dw) {
  const index_t n = p_.n();
  std::vector<double> z(n);
  double total = 0;
  for (index_t i = 0; i < n; ++i) z[i] = at_.z[i] + step * dz[i];
  if (p_.loss.whole_arrays()) {
    total = p_.loss.value(p_.y, z.data(), p_.c, n);
  } else {
    const index_t parts = parts_for(n, 4096);
    std::vector<double> sums(parts);
    parallel_for(parts, [&](index_t q) {
      const index_t b = range_begin(n, parts, q), e = range_begin(n, parts, q + 1);
      sums[q] = p_.loss.value(p_.y + b, z.data() + b, p_.c + b, e - b);
    });
    for (const double s : sums) total += s;
  }
  for (std::size_t k = 0; k < set_.size(); ++k) total += omega(set_[k]).value(w_[set_[k]] + step * dw[k]);
  return total;
}

// Whether X'diag(h)X of the working set should be formed: its cost is compared with that of a few dozen passes over the
// columns. For the squared loss the matrix is kept, so only new columns cost anything.
bool ProximalNewton::gram_pays() {
  const index_t n = p_.n(), m = cols_.cols;
  if (cols_.sparse) {
    if (m > kMostSparseGram) return false;
    const index_t from = constant_ ? gram_cols_ : 0;
    if (rows_.cols != m || rows_.from != from) by_row(cols_, from, rows_);
    return rows_.pairs <= 40.0 * static_cast<double>(cols_.value.size()) + 64.0 * 64.0;
  }
  return constant_ ? m <= std::min(kMostGram, 4 * n + 64) : m <= std::min(kMostGram, n / 4 + 64);
}

// Newton steps on the working set until its largest violation is below `target`. False if no step makes progress.
bool ProximalNewton::improve(double target, bool close) {
  const index_t n = p_.n(), m = cols_.cols;
  const bool use_gram = gram_pays();
  std::vector<CoordinatePenalty> penalty(m);
  for (index_t k = 0; k < m; ++k) penalty[k] = omega(set_[k]);
  bool moved = false;
  double damping = 0;
  Unset<double> damped;
  for (int newton = 0; newton < 20; ++newton) {
    if (damping > 0) {
      damped = at_.h;
      vec::axpy(damping, p_.c, damped.data(), n);
    }
    const Unset<double>& h = damping > 0 ? damped : at_.h;
    std::vector<double> gradients(m + 1, 0.0);
    if (newton == 0) {  // the pass over X that chose the set computed them
      for (index_t k = 0; k < m; ++k) gradients[k] = at_.g[set_[k]];
    } else {
      const index_t parts = parts_for(n * m, 1 << 15, std::max<index_t>(1, std::min<index_t>(m, 32)));
      parallel_for(parts, [&](index_t q) {
        for (index_t k = range_begin(m, parts, q); k < range_begin(m, parts, q + 1); ++k)
          gradients[k] = column_gradient(cols_, k, at_.u.data());
      });
    }
    if (p_.intercept) gradients[m] = vec::sum(at_.u.data(), n);
    double worst = std::fabs(gradients[m]);
    for (index_t k = 0; k < m; ++k) worst = std::max(worst, penalty[k].violation(w_[set_[k]], gradients[k]));
    if (worst <= target) return true;

    std::vector<double> w(m), dw(m);
    for (index_t k = 0; k < m; ++k) w[k] = w_[set_[k]];
    double b = b_;
    // An exact model is solved accurately; an approximate one only accurately enough to make progress.
    const QuadraticOptions options{constant_ ? target : std::max(0.3 * target, 0.05 * worst), 1000, p_.intercept,
                                   close};
    if (use_gram) {
      if (!constant_) {
        gram_cols_ = 0;
        factor_.forget();
      }
      if (gram_cols_ < m || m == 0) {
        reserve_gram(m + 1);
        working_gram(cols_, rows_, h, gram_cols_, p_.intercept, gram_, gram_ld_);
        gram_cols_ = m;
      }
      GramQuadratic q(gram_, gram_ld_, gradients, m, factor_);
      minimise_quadratic(q, penalty, w, b, options);
    } else {
      DirectQuadratic q(cols_, h, at_.u, factor_);
      minimise_quadratic(q, penalty, w, b, options);
    }
    for (index_t k = 0; k < m; ++k) dw[k] = w[k] - w_[set_[k]];
    const double db = b - b_;
    std::vector<double> dz(n, db);
    add_product(cols_, dw, dz.data());

    // Sufficient decrease against the model's directional derivative plus the change of the penalty.
    double predicted = gradients[m] * db;
    for (index_t k = 0; k < m; ++k)
      predicted += gradients[k] * dw[k] + penalty[k].value(w[k]) - penalty[k].value(w_[set_[k]]);
    double step = 1.0;
    int halvings = 0;
    if (!constant_ && predicted < 0) {
      double now = at_.risk;
      for (index_t k = 0; k < m; ++k) now += penalty[k].value(w_[set_[k]]);
      while (objective_at(step, dz, dw) > now + 1e-4 * step * predicted + 1e-14 * std::fabs(now) && halvings++ < 30)
        step *= 0.5;
    }
    if (!(predicted < 0) || halvings > 30) {
      if (constant_ || damping > 0) return moved;
      // The loss may be flat here and curved elsewhere (Huber's, where residuals are large), so that the model has no
      // step or one that is far too long. Damping limits steps to about the size of the scores.
      double steep = 0, size = 1.0;
      for (index_t i = 0; i < n; ++i) {
        if (p_.c[i] > 0) steep += at_.u[i] * at_.u[i] / p_.c[i];
        size += p_.c[i] * at_.z[i] * at_.z[i];
      }
      damping = std::sqrt(steep / size);
      continue;
    }
    damping = 0;
    for (index_t k = 0; k < m; ++k) w_[set_[k]] = step == 1.0 ? w[k] : w_[set_[k]] + step * dw[k];
    b_ += step * db;
    for (index_t i = 0; i < n; ++i) at_.z[i] += step * dz[i];
    refresh();
    moved = true;
    if (constant_) return true;  // the model was exact
    if (Monitor* monitor = Monitor::current()) monitor->poll();
  }
  return moved;
}

// The share of the largest violation at which the inner loop stops. A smaller share would be wasted on columns that the
// next pass replaces. It is small along a path of lassos, where the strong rule has found the columns and one pass
// should suffice, and on a few sparse columns, where a pass costs more than the inner loop.
double ProximalNewton::share_to_leave(bool next_lasso) const {
  if (!constant_) return 0.3;
  return next_lasso ? 1e-3 : (cols_.sparse ? 0.05 : 0.3);
}

LinearSolution ProximalNewton::solve(const Coordinates& penalty, double tol, int max_iter, Monitor& monitor) {
  const index_t d = p_.d();
  penalty_ = penalty;
  LinearSolution out;
  double best = 0;
  int idle = 0;
  for (int it = 1; it <= max_iter; ++it) {
    out.iterations = it;
    if (!current_) evaluate_all();  // along a path the last pass of one penalty is the first of the next
    current_ = true;
    double primal = at_.risk;
    violation_ = std::fabs(at_.gb);
    for (index_t j = 0; j < d; ++j) {
      const CoordinatePenalty p = omega(j);
      primal += p.value(w_[j]);
      violations_[j] = p.violation(w_[j], at_.g[j]);
      violation_ = std::max(violation_, violations_[j]);
    }
    if (steepest_ == 0) steepest_ = std::max(vec::max_abs(at_.g.data(), d), std::fabs(at_.gb));
    const double error = p_.loss.has_conjugate() ? gap(primal) / std::max(std::fabs(primal), 1e-300)
                                                 : violation_ / std::max(steepest_, 1e-300);
    if (monitor.report({it, primal, error})) out.outcome = Outcome::stopped;
    if (error <= tol || violation_ == 0) out.outcome = Outcome::converged;
    if (out.outcome != Outcome::max_iter) break;
    if (it > 1 && !(primal < best - 1e-15 * std::fabs(best)) && ++idle >= 3) {
      out.outcome = Outcome::stalled;
      break;
    }
    if (it == 1 || primal < best) best = primal;
    const bool next_on_path = !last_l1_.empty();
    if (!next_on_path) drop_idle();
    grow();
    last_l1_.clear();
    const bool next_lasso =
        next_on_path && constant_ && std::all_of(penalty_.l2, penalty_.l2 + d, [](double x) { return x == 0; });
    improve(share_to_leave(next_lasso) * violation_, next_lasso);
    current_ = false;
  }
  last_l1_.assign(penalty_.l1, penalty_.l1 + d);  // a copy: the caller may write the next penalty in its place
  out.w = w_;
  out.b = b_;
  out.dual.resize(p_.n());
  for (index_t i = 0; i < p_.n(); ++i) out.dual[i] = p_.c[i] > 0 ? at_.u[i] / p_.c[i] : 0.0;
  return out;
}

}  // namespace hinge
