#include "multiclass/newton.hpp"

#include <cmath>
#include <limits>

#include "core/blas.hpp"
#include "core/cholesky.hpp"
#include "multiclass/rows.hpp"

namespace hinge {
namespace {

using namespace multiclass;

constexpr index_t kMostUnknowns = 4000;
constexpr index_t kBlock = 256;  // rows gathered at a time
constexpr index_t kTile = 256;   // columns of a matrix per piece of work
constexpr int kPatience = 80;    // steps without a smaller gap after which only rounding errors remain
constexpr double kSettled =
    0.3;  // the inner problem is solved when its part of the gap is at most this fraction of the other
constexpr double kFirstSigma = 3, kLeastSigma = 1e-7;  // in mean gaps per row; in units of the costs
constexpr double kWarmSigma =
    3e-3;  // in units of the costs: a start near the optimum for other costs may be far from this one

index_t unknowns(const Rows& x, index_t classes) { return (classes - 1) * (x.cols + (x.mean ? 1 : 0)); }

class Method {
 public:
  Method(const Rows& x, const MulticlassSvmProblem& problem, std::vector<double>& p)
      : x_(x),
        problem_(problem),
        n_(x.rows),
        k_(problem.classes),
        width_(padded(k_)),
        d_(x.cols),
        m_(x.cols + (x.mean ? 1 : 0)),
        p_(p),
        anchor_(p),
        W_(m_ * width_, 0.0),
        V_(m_ * width_, 0.0),
        G_(m_ * width_, 0.0),
        step_(m_ * width_, 0.0),
        S_(n_ * width_, 0.0),
        T_(n_ * width_, 0.0),
        raw_(d_ * width_, 0.0),
        total_(width_, 0.0),
        grams_(k_ * (k_ - 1) / 2) {}

  MulticlassNewtonResult run(double tolerance, int before, int most, Monitor& monitor) {
    MulticlassNewtonResult out;
    sums();
    W_ = V_;
    times(W_, S_);
    const double weight = vec::sum(problem_.c, n_), cost = *std::max_element(problem_.cost, problem_.cost + k_ * k_);
    const double least = kLeastSigma * (cost > 0 ? cost : 1.0);
    const double lowest = problem_.start ? kWarmSigma / kLeastSigma * least : least;
    sigma_ = std::max(kFirstSigma * evaluate(0.0, false).slack / weight, lowest);
    Sums now = evaluate(0.0, true);
    double smallest = std::numeric_limits<double>::infinity();
    for (int inner = 0, waited = 0;;) {
      sums();
      const double residual = distance(), primal = now.loss + 0.5 * vec::square_sum(W_.data(), m_ * width_);
      const double gap = now.slack + residual;
      if (out.steps > 0 && monitor.report({before + out.steps, primal, gap})) {
        out.stopped = true;
        break;
      }
      const bool close = gap <= tolerance * primal;
      if ((close && gap_at_sums_within(tolerance * primal)) || out.steps >= most) break;
      waited = gap < 0.9 * smallest ? 0 : waited + 1;
      smallest = std::min(smallest, gap);
      if (waited > kPatience) break;
      ++out.steps;
      bool moved = false;
      if (!close && residual <= kSettled * now.slack) {
        anchor_ = p_;
        sigma_ = std::max(sigma_ * (inner <= 1   ? 0.2
                                    : inner <= 3 ? 0.4
                                                 : 0.6),
                          least);  // decreases more slowly after hard inner problems
        inner = 0;
        moved = predict(now);
      }
      if (!moved && !descend(now)) break;
      ++inner;
    }
    return out;
  }

 private:
  struct Sums {
    double smooth = 0, derivative = 0;  // the inner objective without 1/2 |W|^2, and its derivative along T
    double loss = 0, slack = 0;         // the hinge losses, and the first part of the gap
  };

  // Z = scores of weights M.
  void times(const Table& M, Table& Z) const {
    Table shift(width_, 0.0);
    for (index_t a = 0; a < d_ && x_.mean; ++a) vec::axpy(-x_.mean[a], M.data() + a * width_, shift.data(), width_);
    if (x_.mean) vec::axpy(x_.constant, M.data() + d_ * width_, shift.data(), width_);
    const index_t parts = parts_for(n_ * width_, 1 << 12);
    parallel_for(parts, [&](index_t part) {
      for (index_t i = range_begin(n_, parts, part); i < range_begin(n_, parts, part + 1); ++i) {
        double* z = Z.data() + i * width_;
        row_scores(x_, M, width_, i, z);
        for (index_t j = 0; j < width_ && x_.mean; ++j) z[j] += shift[j];
      }
    });
  }

  // V = V(p)
  void sums() {
    sum_rows(
        x_, width_,
        [&](index_t i, double* r) {
          const double* p = p_.data() + i * k_;
          if (p[problem_.y[i]] == 1.0) return false;
          for (index_t j = 0; j < k_; ++j) r[j] = -problem_.c[i] * p[j];
          r[problem_.y[i]] += problem_.c[i];
          return true;
        },
        raw_, total_);
    std::copy(raw_.begin(), raw_.end(), V_.begin());
    if (!x_.mean) return;
    for (index_t a = 0; a < d_; ++a) vec::axpy(-x_.mean[a], total_.data(), V_.data() + a * width_, width_);
    for (index_t j = 0; j < width_; ++j) V_[d_ * width_ + j] = x_.constant * total_[j];
  }

  // 1/2 |W - V|^2, with W - V in G.
  double distance() {
    for (std::size_t e = 0; e < W_.size(); ++e) G_[e] = W_[e] - V_[e];
    return 0.5 * vec::square_sum(G_.data(), m_ * width_);
  }

  // Whether the gap at V(p), the weights that will be returned, is small enough.
  bool gap_at_sums_within(double allowed) {
    times(V_, T_);
    S_.swap(T_);
    const double sigma = sigma_;
    sigma_ = 0;
    const double slack = evaluate(0.0, false).slack;
    sigma_ = sigma;
    S_.swap(T_);
    return slack <= allowed;
  }

  // Evaluates all rows at scores S + at T; with `move`, updates p. With sigma = 0, p is used unchanged.
  Sums evaluate(double at, bool move) {
    const index_t parts = parts_for(n_ * k_, 1 << 12);
    std::vector<Sums> sums(parts);
    parallel_for(parts, [&](index_t part) {
      std::vector<double> t(k_), v(k_), left(k_);
      for (index_t i = range_begin(n_, parts, part); i < range_begin(n_, parts, part + 1); ++i)
        evaluate_row(i, at, move, t.data(), v.data(), left.data(), sums[part]);
    });
    Sums out;
    for (const Sums& s : sums) {
      out.smooth += s.smooth;
      out.derivative += s.derivative;
      out.loss += s.loss;
      out.slack += s.slack;
    }
    return out;
  }

  void evaluate_row(index_t i, double at, bool move, double* t, double* v, double* left, Sums& out) {
    const double* cost = problem_.cost + problem_.y[i] * k_;
    const double *s = S_.data() + i * width_, *ds = T_.data() + i * width_, *q = anchor_.data() + i * k_;
    double* p = p_.data() + i * k_;
    const double c = problem_.c[i];
    const index_t y = problem_.y[i];
    const double true_score = s[y] + at * ds[y];
    double highest = -std::numeric_limits<double>::infinity();
    for (index_t j = 0; j < k_; ++j) {
      t[j] = cost[j] + s[j] + at * ds[j];
      highest = std::max(highest, t[j]);
    }
    out.loss += c * (highest - true_score);
    if (sigma_ == 0) {
      double held = 0;
      for (index_t j = 0; j < k_; ++j) held += p[j] * (t[j] - highest);
      out.slack -= c * held;
      return;
    }
    index_t top = 0, contenders = 0;
    for (index_t j = 0; j < k_; ++j) {
      t[j] -= highest;  // differences of scores are small
      v[j] = q[j] + t[j] / sigma_;
      top = v[j] > v[top] ? j : top;
    }
    for (index_t j = 0; j < k_; ++j) contenders += j != top && v[j] > v[top] - 1.0;
    if (contenders > 0) {
      project_simplex(v, k_, left);
    } else {
      std::fill(v, v + k_, 0.0);
      v[top] = 1.0;
    }
    double held = 0, moved = 0, derivative = 0;
    for (index_t j = 0; j < k_; ++j) {
      held += v[j] * t[j];
      moved += (v[j] - q[j]) * (v[j] - q[j]);
      derivative += v[j] * ds[j];
    }
    out.smooth += c * (highest + held - 0.5 * sigma_ * moved - true_score);
    out.derivative += c * (derivative - ds[y]);
    out.slack -= c * held;
    if (move) std::copy(v, v + k_, p);
  }

  // The first step for a new anchor: to the minimum under the assumption that every row keeps its support. Returns
  // false if that does not decrease the objective; p then belongs to the old weights.
  bool predict(Sums& now) {
    const index_t size = m_ * width_;
    const double before = evaluate(0.0, false).smooth + 0.5 * vec::square_sum(W_.data(), size);
    gather(anchor_);
    extrapolate();
    sums();
    distance();
    if (direction()) {
      times(step_, T_);
      now = evaluate(1.0, true);
      vec::axpy(1.0, step_.data(), W_.data(), size);
      if (now.smooth + 0.5 * vec::square_sum(W_.data(), size) < before) {
        vec::axpy(1.0, T_.data(), S_.data(), n_ * width_);
        return true;
      }
      vec::axpy(-1.0, step_.data(), W_.data(), size);
    }
    now = evaluate(0.0, true);
    sums();
    distance();
    return false;
  }

  // One Newton step.
  bool descend(Sums& now) {
    gather(p_);
    if (!direction()) return false;
    times(step_, T_);
    now = search();
    return true;
  }

  // p = the nearest points to q + (D + s) / sigma in the affine hulls of the supports of q, not only in the simplex.
  void extrapolate() {
    const index_t parts = parts_for(n_ * k_, 1 << 12);
    parallel_for(parts, [&](index_t part) {
      for (index_t i = range_begin(n_, parts, part); i < range_begin(n_, parts, part + 1); ++i) {
        const double *cost = problem_.cost + problem_.y[i] * k_, *s = S_.data() + i * width_,
                     *q = anchor_.data() + i * k_;
        double mean = 0, count = 0;
        for (index_t j = 0; j < k_; ++j)
          if (q[j] > 0) mean += cost[j] + s[j], ++count;
        if (count < 2) continue;
        mean /= count;
        for (index_t j = 0; j < k_; ++j)
          if (q[j] > 0) p_[i * k_ + j] = q[j] + (cost[j] + s[j] - mean) / sigma_;
      }
    });
  }

  // step = -Hessian^-1 (W - V) for the gathered rows.
  bool direction() {
    multiply();
    const index_t N = (k_ - 1) * m_;
    H_.resize(N * N);
    place();
    if (!cholesky(N, H_.data(), N)) return false;
    std::vector<double> rhs(N);
    for (index_t j = 0; j + 1 < k_; ++j)
      for (index_t a = 0; a < m_; ++a) rhs[j * m_ + a] = G_[a * width_ + k_ - 1] - G_[a * width_ + j];
    blas::potrs('L', N, 1, H_.data(), N, rhs.data(), N);
    for (index_t a = 0; a < m_; ++a) {
      double last = 0;
      for (index_t j = 0; j + 1 < k_; ++j) last -= step_[a * width_ + j] = rhs[j * m_ + a];
      step_[a * width_ + k_ - 1] = last;
    }
    if (Monitor* monitor = Monitor::current()) monitor->poll();
    return std::isfinite(vec::square_sum(rhs.data(), N));
  }

  struct Member {
    index_t row;
    double factor;
  };
  index_t pair(index_t a, index_t b) const { return a < b ? b * (b - 1) / 2 + a : a * (a - 1) / 2 + b; }

  // The rows of each G_jk with the square roots of their weights.
  void gather(const std::vector<double>& p) {
    members_.assign(grams_.size(), {});
    std::vector<index_t> held(k_);
    for (index_t i = 0; i < n_; ++i) {
      index_t count = 0;
      for (index_t j = 0; j < k_; ++j)
        if (p[i * k_ + j] > 0) held[count++] = j;
      if (count < 2) continue;
      const double factor = std::sqrt(problem_.c[i] / (sigma_ * static_cast<double>(count)));
      for (index_t b = 1; b < count; ++b)
        for (index_t a = 0; a < b; ++a) members_[pair(held[a], held[b])].push_back({i, factor});
    }
  }

  // The G_jk, both triangles; empty if there are no rows.
  void multiply() {
    const index_t tiles = (m_ + kTile - 1) / kTile, pairs = static_cast<index_t>(grams_.size());
    for (index_t q = 0; q < pairs; ++q) grams_[q].resize(members_[q].empty() ? 0 : m_ * m_);
    parallel_for(pairs * tiles, [&](index_t piece) {
      const index_t q = piece / tiles, from = piece % tiles * kTile, cols = std::min(kTile, m_ - from);
      const std::vector<Member>& rows = members_[q];
      double* G = grams_[q].data() + from * m_ + from;
      std::vector<double> block(rows.empty() ? 0 : std::min(kBlock, static_cast<index_t>(rows.size())) * m_);
      for (std::size_t at = 0; at < rows.size(); at += kBlock) {
        const index_t count = std::min<index_t>(kBlock, rows.size() - at);
        for (index_t r = 0; r < count; ++r) write(rows[at + r], block.data() + r * m_);
        blas::gemm('N', 'T', m_ - from, cols, count, 1.0, block.data() + from, m_, block.data() + from, m_,
                   at == 0 ? 0.0 : 1.0, G, m_);
      }
      for (index_t c = 0; c < cols && !rows.empty(); ++c)
        for (index_t r = c + 1; r < m_ - from; ++r) grams_[q][(from + r) * m_ + from + c] = G[c * m_ + r];
    });
  }

  void write(const Member& member, double* out) const {
    const index_t i = member.row;
    if (x_.indptr) {
      for (index_t a = 0; a < d_; ++a) out[a] = x_.mean ? -member.factor * x_.mean[a] : 0.0;
      for (index_t e = x_.indptr[i]; e < x_.indptr[i + 1]; ++e) out[x_.index[e]] += member.factor * x_.value[e];
    } else {
      const double* row = x_.value + i * d_;
      for (index_t a = 0; a < d_; ++a) out[a] = member.factor * (row[a] - (x_.mean ? x_.mean[a] : 0.0));
    }
    if (x_.mean) out[d_] = member.factor * x_.constant;
  }

  // The Hessian without the last class: lower triangle of H, class by class. With w_last = -sum of the others, block
  // (a, b) is (1 + [a = b]) I + L_ab - L_a,last - L_last,b + L_last,last for the Laplacian L of the G_jk.
  void place() {
    const index_t N = (k_ - 1) * m_, last = k_ - 1, area = m_ * m_;
    std::vector<double> corner(area, 0.0);
    for (index_t j = 0; j < last; ++j) add(1.0, j, last, corner);
    parallel_for(last * (last + 1) / 2, [&](index_t piece) {
      index_t a = 0;
      while ((a + 1) * (a + 2) / 2 <= piece) ++a;
      const index_t b = piece - a * (a + 1) / 2;
      std::vector<double> block(corner);
      if (a == b) {
        for (index_t j = 0; j < k_; ++j)
          if (j != a) add(j == last ? 3.0 : 1.0, a, j, block);
      } else {
        add(-1.0, a, b, block);
        add(1.0, a, last, block);
        add(1.0, b, last, block);
      }
      for (index_t c = 0; c < m_; ++c) {
        block[c * m_ + c] += a == b ? 2.0 : 1.0;
        std::copy_n(block.data() + c * m_, m_, H_.data() + (b * m_ + c) * N + a * m_);
      }
    });
  }
  void add(double factor, index_t a, index_t b, std::vector<double>& out) const {
    const std::vector<double>& G = grams_[pair(a, b)];
    if (!G.empty()) vec::axpy(factor, G.data(), out.data(), static_cast<index_t>(out.size()));
  }

  // Line search along the step to a point where the derivative of the inner objective is small (the objective is
  // convex, so the derivative increases), and moves there.
  Sums search() {
    const index_t size = m_ * width_;
    const double across = vec::dot(W_.data(), step_.data(), size), length = vec::square_sum(step_.data(), size);
    const double down = vec::dot(G_.data(), step_.data(), size);  // the derivative at 0
    double low = 0, high = 1, at = 1, derivative_low = down;
    Sums now = evaluate(at, true);
    for (int trial = 0; trial < 20; ++trial) {
      const double derivative = now.derivative + across + at * length;
      if (derivative <= 0.1 * std::fabs(down) && (at == 1 || derivative >= -0.3 * std::fabs(down))) break;
      double next;
      if (derivative > 0) {
        high = at;
        next = low + (high - low) * std::clamp(-derivative_low / (derivative - derivative_low), 0.1, 0.9);
      } else {
        low = at;
        derivative_low = derivative;
        next = 0.5 * (low + high);
      }
      at = next;
      now = evaluate(at, true);
    }
    vec::axpy(at, step_.data(), W_.data(), size);
    vec::axpy(at, T_.data(), S_.data(), n_ * width_);
    return now;
  }

  const Rows& x_;
  const MulticlassSvmProblem& problem_;
  index_t n_, k_, width_, d_, m_;
  std::vector<double>& p_;
  std::vector<double> anchor_;  // q
  Table W_, V_, G_, step_, S_, T_, raw_, total_;
  double sigma_ = 0;
  std::vector<std::vector<Member>> members_;
  std::vector<std::vector<double>> grams_;
  std::vector<double> H_;
};

}  // namespace

double multiclass_newton_passes(const Rows& x, index_t classes) {
  const double N = static_cast<double>(unknowns(x, classes));
  if (N > kMostUnknowns) return std::numeric_limits<double>::infinity();
  const double pass = 4.0 * static_cast<double>((x.indptr ? x.indptr[x.rows] : x.rows * x.cols) * padded(classes));
  return 30.0 * (0.5 + N * N * N / 24.0 / pass);
}

MulticlassNewtonResult multiclass_newton(const Rows& x, const MulticlassSvmProblem& problem, double tolerance,
                                         int before, int most, std::vector<double>& p, Monitor& monitor) {
  return Method(x, problem, p).run(tolerance, before, most, monitor);
}

}  // namespace hinge
