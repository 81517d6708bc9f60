#include "solvers/multinomial.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/blas.hpp"
#include "core/cholesky.hpp"
#include "core/matmul_thin.hpp"
#include "core/random.hpp"
#include "core/row_products.hpp"
#include "problem/softmax.hpp"

namespace hinge {
namespace {

constexpr index_t kMostFactored = 2000;  // features up to which the blocks are factored
constexpr index_t kSampleRows = 3;       // sampled rows per feature: a preconditioner need not be accurate
constexpr int kManyProducts = 6;         // products that cost about as much as a new preconditioner
constexpr int kMostProducts = 200;       // conjugate gradient steps per Newton step
constexpr index_t kBlock = 32;           // rows per block, which stay in cache for the second product
constexpr index_t kClassRows = 2048;     // least rows per parallel task

using Vec = std::vector<double>;

// One pass over X: Z = X W for a block of rows, body(begin, end, Z, U) computes gradients from scores, G = X'U. W, Z, U
// and G have `width` entries a row: the classes, then zero padding.
class Pass {
 public:
  using Body = std::function<void(index_t begin, index_t end, const double* Z, double* U)>;

  Pass(const Design& X, index_t classes) : X_(X), rows_(X.row_view()) {
    const index_t padded = (classes + 7) / 8 * 8;
    thin_ = padded <= 32 && !std::holds_alternative<std::monostate>(rows_);
    width_ = thin_ ? padded : classes;
  }
  index_t width() const { return width_; }

  void run(const double* W, const Body& body, double* G) const {
    if (!thin_) return unblocked(W, body, G);
    std::visit(
        [&](const auto& view) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(view)>, std::monostate>) switch (width_) {
              case 8:
                return blocks<8>(view, W, body, G);
              case 16:
                return blocks<16>(view, W, body, G);
              case 24:
                return blocks<24>(view, W, body, G);
              default:
                return blocks<32>(view, W, body, G);
            }
        },
        rows_);
  }

 private:
  template <index_t K, class View>
  void blocks(const View& view, const double* W, const Body& body, double* G) const {
    const index_t n = X_.rows(), d = X_.cols();
    const index_t parts = sum_parts(X_.stored() * K, 1 << 16, d * K);
    std::vector<Vec> partial(parts);
    parallel_for(parts, [&](index_t p) {
      partial[p].assign(d * K, 0.0);
      Vec Z(kBlock * K), U(kBlock * K);
      const index_t last = range_begin(n, parts, p + 1);
      for (index_t i = range_begin(n, parts, p); i < last; i += kBlock) {
        const index_t end = std::min(i + kBlock, last);
        thin::times<K>(view, i, end, W, Z.data());
        body(i, end, Z.data(), U.data());
        thin::add_transposed<K>(view, i, end, U.data(), partial[p].data());
      }
    });
    add_parts(partial, G, d * K);
  }

  void unblocked(const double* W, const Body& body, double* G) const {
    const index_t n = X_.rows();
    Vec &Z = scores_, &U = gradients_;
    Z.resize(n * width_);
    U.resize(n * width_);
    X_.matmat(W, width_, Z.data());
    const index_t parts = parts_for(n * width_, 1 << 13);
    parallel_for(parts, [&](index_t p) {
      const index_t b = range_begin(n, parts, p), e = range_begin(n, parts, p + 1);
      body(b, e, Z.data() + b * width_, U.data() + b * width_);
    });
    X_.rmatmat(U.data(), width_, G);
  }

  const Design& X_;
  RowView rows_;
  bool thin_;
  index_t width_;
  mutable Vec scores_, gradients_;  // reused between passes: allocating fresh pages costs more than the arithmetic
};

// Vectors of unknowns hold W (d rows of `width`), then b (one more row).
class Solver {
 public:
  explicit Solver(const MultinomialProblem& p)
      : p_(p), pass_(p.X, p.classes), K_(pass_.width()), P_(p.X.rows() * K_, 0.0) {}

  index_t size() const { return (p_.X.cols() + 1) * K_; }

  Vec pack(const Vec& W, const Vec& b) const {
    Vec x(size(), 0.0);
    for (index_t j = 0; j < p_.X.cols(); ++j)
      for (index_t a = 0; a < p_.classes; ++a) x[j * K_ + a] = W[j * p_.classes + a];
    for (index_t a = 0; a < p_.classes && p_.intercept; ++a) x[p_.X.cols() * K_ + a] = b[a];
    centre(x);
    return x;
  }

  void unpack(const Vec& x, MultinomialSolution& out) const {
    const index_t d = p_.X.cols(), k = p_.classes;
    out.W.resize(d * k);
    out.b.assign(k, 0.0);
    for (index_t j = 0; j < d; ++j)
      for (index_t a = 0; a < k; ++a) out.W[j * k + a] = x[j * K_ + a];
    for (index_t a = 0; a < k && p_.intercept; ++a) out.b[a] = x[d * K_ + a];
  }

  // The objective at x and its gradient; stores the probabilities.
  double evaluate(const Vec& x, Vec& gradient) {
    const index_t k = p_.classes;
    const double value = over_rows(x, gradient, [&](index_t i, const double* z, double* u) {
      double* p = P_.data() + i * K_;
      const index_t label = static_cast<index_t>(p_.y[i]);
      const double loss = p_.c[i] * (softmax_row(z, k, p) - z[label]);
      for (index_t a = 0; a < k; ++a) u[a] = p_.c[i] * p[a];
      u[label] -= p_.c[i];
      return loss;
    });
    double penalty = 0;
    for (index_t j = 0; j < p_.X.cols(); ++j)
      for (index_t a = 0; a < k; ++a) {
        penalty += 0.5 * p_.l2[j] * x[j * K_ + a] * x[j * K_ + a];
        gradient[j * K_ + a] += p_.l2[j] * x[j * K_ + a];
      }
    return value + penalty;
  }

  // out = H v at the last point evaluated.
  void product(const Vec& v, Vec& out) {
    const index_t k = p_.classes;
    over_rows(v, out, [&](index_t i, const double* z, double* u) {
      const double* p = P_.data() + i * K_;
      const double mean = vec::dot(p, z, k);
      for (index_t a = 0; a < k; ++a) u[a] = p_.c[i] * p[a] * (z[a] - mean);
      return 0.0;
    });
    for (index_t j = 0; j < p_.X.cols(); ++j)
      for (index_t a = 0; a < k; ++a) out[j * K_ + a] += p_.l2[j] * v[j * K_ + a];
  }

  // Computes the preconditioner at the stored probabilities.
  void prepare() {
    const index_t n = p_.X.rows(), d = p_.X.cols(), k = p_.classes;
    const bool factor = !p_.X.sparse() && d <= kMostFactored;
    const double wanted = static_cast<double>(std::max<index_t>(kSampleRows * d, 2000));
    Vec h(n);
    diagonal_.assign(size(), 1.0);
    blocks_.assign(factor ? k : 0, Vec());
    for (index_t a = 0; a < k; ++a) {
      const double total = curvature(a, h);
      diagonal_[d * K_ + a] = p_.intercept ? std::max(total, 1e-300) : 1.0;
      if (!factor) continue;
      // Rows are drawn in proportion to their curvature and weighted by its inverse: late in a fit most rows have
      // almost none.
      const Random random(0, static_cast<std::uint64_t>(a));
      parallel_ranges(n, kClassRows, [&](index_t begin, index_t end) {
        for (index_t i = begin; i < end; ++i) {
          const double chance = std::min(1.0, wanted * h[i] / std::max(total, 1e-300));
          h[i] = chance > 0 && random.uniform_at(i) < chance ? h[i] / chance : 0.0;
        }
      });
      blocks_[a].resize(d * d);
      p_.X.gram(h.data(), blocks_[a].data());
    }
    if (!factor || !factor_blocks()) prepare_diagonal();
  }

  // Subtracts the mean over the classes from every row. A constant added to all classes changes no probability, so
  // solutions, gradients and products with H have mean zero. Steps must stay in this subspace, where H is well
  // conditioned.
  void centre(Vec& x) const {
    const index_t k = p_.classes;
    for (index_t j = 0; j <= p_.X.cols(); ++j) {
      double* row = x.data() + j * K_;
      const double mean = vec::sum(row, k) / static_cast<double>(k);
      for (index_t a = 0; a < k; ++a) row[a] -= mean;
    }
  }

  // s = M^-1 r, centred.
  void precondition(const Vec& r, Vec& s) const {
    solve_blocks(r, s);
    centre(s);
  }

  // The part of the gap besides Newton's decrement: |g|^2 / 2 l2.
  double slack(const Vec& g) const {
    double total = 0;
    for (index_t j = 0; j < p_.X.cols(); ++j)
      for (index_t a = 0; a < p_.classes && p_.l2[j] > 0; ++a) total += 0.5 * g[j * K_ + a] * g[j * K_ + a] / p_.l2[j];
    return total;
  }

 private:
  // h = c p (1 - p) for class a, and its sum.
  double curvature(index_t a, Vec& h) const {
    return sum_ranges(p_.X.rows(), kClassRows, [&](index_t begin, index_t end) {
      double total = 0;
      for (index_t i = begin; i < end; ++i) {
        const double p = P_[i * K_ + a];
        h[i] = p_.c[i] * p * (1.0 - p);
        total += h[i];
      }
      return total;
    });
  }

  // The Cholesky factors of the blocks, class by class; false, and no blocks, if one is not positive definite.
  bool factor_blocks() {
    const index_t d = p_.X.cols(), k = p_.classes;
    std::vector<char> done(k);
    parallel_for(k, [&](index_t a) {
      Vec& G = blocks_[a];
      for (index_t j = 0; j < d; ++j) G[j * d + j] += p_.l2[j] + 1e-6 * G[j * d + j] + 1e-300;
      done[a] = cholesky(d, G.data(), d);
    });
    if (std::all_of(done.begin(), done.end(), [](char ok) { return ok; })) return true;
    blocks_.clear();
    return false;
  }

  void solve_blocks(const Vec& r, Vec& s) const {
    const index_t d = p_.X.cols(), k = p_.classes;
    s = r;
    if (blocks_.empty()) {
      for (std::size_t e = 0; e < s.size(); ++e) s[e] /= diagonal_[e];
      return;
    }
    parallel_for(k, [&](index_t a) {
      Vec column(d);
      for (index_t j = 0; j < d; ++j) column[j] = r[j * K_ + a];
      blas::potrs('L', d, 1, blocks_[a].data(), d, column.data(), d);
      for (index_t j = 0; j < d; ++j) s[j * K_ + a] = column[j];
    });
    for (index_t a = 0; a < K_; ++a) s[d * K_ + a] = r[d * K_ + a] / diagonal_[d * K_ + a];
  }

  void prepare_diagonal() {
    const index_t n = p_.X.rows(), d = p_.X.cols();
    Vec h(n), squares(d);
    for (index_t a = 0; a < p_.classes; ++a) {
      curvature(a, h);
      p_.X.square_sums(h.data(), squares.data());
      for (index_t j = 0; j < d; ++j) diagonal_[j * K_ + a] = std::max(squares[j] + p_.l2[j], 1e-300);
    }
  }

  // out += the sum of the rows of U.
  void add_rows(const Vec& U, double* out) const {
    const index_t n = p_.X.rows(), k = p_.classes, parts = parts_for(n, kClassRows);
    Vec partial(parts * k, 0.0);
    parallel_for(parts, [&](index_t p) {
      for (index_t i = range_begin(n, parts, p); i < range_begin(n, parts, p + 1); ++i)
        for (index_t a = 0; a < k; ++a) partial[p * k + a] += U[i * K_ + a];
    });
    for (index_t p = 0; p < parts; ++p)
      for (index_t a = 0; a < k; ++a) out[a] += partial[p * k + a];
  }

  // A pass in which body(i, z, u) processes one row and returns its summand.
  template <class Row>
  double over_rows(const Vec& x, Vec& out, const Row& body) {
    const index_t n = p_.X.rows(), d = p_.X.cols(), k = p_.classes;
    const double* b = x.data() + d * K_;
    Vec &values = values_, &gradients = gradients_;
    values.resize(n);
    gradients.resize(p_.intercept ? n * K_ : 0);
    pass_.run(
        x.data(),
        [&](index_t begin, index_t end, const double* Z, double* U) {
          Vec z(k);
          for (index_t i = begin; i < end; ++i) {
            double* u = U + (i - begin) * K_;
            for (index_t a = 0; a < k; ++a) z[a] = Z[(i - begin) * K_ + a] + (p_.intercept ? b[a] : 0.0);
            values[i] = body(i, z.data(), u);
            if (p_.intercept) std::copy(u, u + k, gradients.data() + i * K_);
          }
        },
        out.data());
    for (index_t a = 0; a < K_; ++a) out[d * K_ + a] = 0.0;
    if (p_.intercept) add_rows(gradients, out.data() + d * K_);
    return sum_ranges(n, kClassRows, [&](index_t b, index_t e) { return vec::sum(values.data() + b, e - b); });
  }

  const MultinomialProblem& p_;
  Pass pass_;
  index_t K_;
  Vec P_;         // probabilities, n rows of K_
  Vec diagonal_;  // of the preconditioner; with factored blocks only the part of the biases is used
  std::vector<Vec> blocks_;
  Vec values_, gradients_;  // one entry per row, reused between passes
};

}  // namespace

MultinomialSolution multinomial_newton_cg(const MultinomialProblem& problem, std::vector<double> W,
                                          std::vector<double> b, double tol, int max_iter, bool proved,
                                          Monitor& monitor) {
  Solver solver(problem);
  const index_t m = solver.size();
  Vec x = solver.pack(W, b), g(m), trial(m), gt(m), s(m), r(m), z(m), v(m), Hv(m);
  double value = solver.evaluate(x, g), forcing = 0.3, before = 0;
  int products = kManyProducts;
  MultinomialSolution out;
  for (int it = 1; it <= max_iter; ++it) {
    out.iterations = it;
    if (products >= kManyProducts) solver.prepare();
    products = 0;
    r = g;
    solver.precondition(r, z);
    double rz = vec::dot(r.data(), z.data(), m);
    if (it > 1) forcing = std::clamp(std::sqrt(rz / std::max(before, 1e-300)) * 0.5, 1e-3, 0.3);
    before = rz;
    std::fill(s.begin(), s.end(), 0.0);
    for (index_t e = 0; e < m; ++e) v[e] = -z[e];
    // g'M^-1 g estimates Newton's decrement, twice the remaining decrease: if it is small enough, no step is computed.
    const bool there = proved && it > 1 && rz + solver.slack(g) <= tol * std::fabs(value);
    const double enough = there ? rz : forcing * forcing * rz;
    for (; products < kMostProducts && rz > enough; ++products) {
      solver.product(v, Hv);
      const double curvature = vec::dot(v.data(), Hv.data(), m);
      if (!(curvature > 0)) break;
      const double alpha = rz / curvature;
      vec::axpy(alpha, v.data(), s.data(), m);
      vec::axpy(alpha, Hv.data(), r.data(), m);
      solver.precondition(r, z);
      const double old = rz;
      rz = vec::dot(r.data(), z.data(), m);
      for (index_t e = 0; e < m; ++e) v[e] = -z[e] + rz / old * v[e];
      monitor.poll();
    }
    const double decrement = -vec::dot(g.data(), s.data(), m);
    if (monitor.report({it, value, -1.0})) out.outcome = Outcome::stopped;
    if (0.5 * decrement + (proved ? solver.slack(g) : 0.0) <= tol * std::fabs(value)) {
      if (!proved) vec::axpy(1.0, s.data(), x.data(), m);  // a step this short needs no line search
      out.outcome = Outcome::converged;
    }
    if (out.outcome != Outcome::max_iter) break;
    double step = 1.0, next = 0;
    bool accepted = false;
    for (int halving = 0; halving < 40 && !accepted; ++halving, step *= 0.5) {
      trial = x;
      vec::axpy(step, s.data(), trial.data(), m);
      next = solver.evaluate(trial, gt);
      accepted = next <= value - 1e-4 * step * decrement + 1e-14 * std::fabs(value);
    }
    if (!accepted) {
      out.outcome = Outcome::stalled;
      break;
    }
    x.swap(trial);
    g.swap(gt);
    value = next;
  }
  solver.unpack(x, out);
  return out;
}

}  // namespace hinge
