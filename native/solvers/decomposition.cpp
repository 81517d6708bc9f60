#include "solvers/decomposition.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "core/pool.hpp"
#include "solvers/batch.hpp"
#include "solvers/row_cache.hpp"

namespace hinge {
namespace {

// Variables per batch: their kernel values (1 MB in float) fit in the second-level cache.
constexpr index_t kBatch = 512;
// A batch is solved until its violation has fallen to this fraction.
constexpr double kBatchAccuracy = 0.1;
// Every kCheckInterval batches the solver checks that the objective still falls by more than its rounding error, which
// is kRounding times the sum of the absolute values of its terms.
constexpr int kCheckInterval = 16;
constexpr double kRounding = 1e-16;
// Points are shrunk when at least this fraction of the active ones can be ...
constexpr double kWorthShrinking = 0.1;

// ... and after this many kernel rows per point: reactivating points costs as much as computing the rows of all support
// vectors, which only a long run earns back.
constexpr index_t kPatience = 8;

// F[c] += sum_r step_r rows_r[c] for c in [begin, end).
template <class T>
HINGE_HOT void add_rows(const T* const* rows, const double* step, index_t m, index_t begin, index_t end, double* F) {
  index_t r = 0;
  for (; r + 4 <= m; r += 4) {
    const T* __restrict k0 = rows[r], * __restrict k1 = rows[r + 1], * __restrict k2 = rows[r + 2], * __restrict k3 = rows[r + 3];
    const double s0 = step[r], s1 = step[r + 1], s2 = step[r + 2], s3 = step[r + 3];
    for (index_t c = begin; c < end; ++c)
      F[c] += (s0 * static_cast<double>(k0[c]) + s1 * static_cast<double>(k1[c])) +
              (s2 * static_cast<double>(k2[c]) + s3 * static_cast<double>(k3[c]));
  }
  for (; r < m; ++r)
    for (index_t c = begin; c < end; ++c) F[c] += step[r] * static_cast<double>(rows[r][c]);
}

template <class T>
void add_rows(const std::vector<const T*>& rows, const std::vector<double>& step, index_t columns, double* F) {
  const index_t m = static_cast<index_t>(rows.size()), parts = parts_for(columns, 1024, 256);
  parallel_for(parts, [&](index_t part) {
    add_rows<T>(rows.data(), step.data(), m, range_begin(columns, parts, part), range_begin(columns, parts, part + 1),
                F);
  });
}

// to[c] = row[at[c]]
template <class T>
HINGE_HOT void gather(const T* __restrict row, const index_t* __restrict at, index_t m, T* __restrict to) {
  for (index_t c = 0; c < m; ++c) to[c] = row[at[c]];
}

template <class T>
class Decomposition {
 public:
  Decomposition(RowSource<T>& source, const DualProblem& problem, std::vector<double> alpha, std::vector<double> scores,
                const DecompositionOptions& options, Monitor& monitor)
      : source_(source),
        p_(problem),
        options_(options),
        monitor_(monitor),
        in_memory_(source.kept(0) != nullptr),
        size_(std::min<index_t>(kBatch, problem.variables)),
        cache_(problem.n, in_memory_ ? 1 : std::min<index_t>(problem.n, size_), in_memory_ ? 0 : options.cache_bytes),
        a_(std::move(alpha)),
        F_(std::move(scores)),
        active_(problem.n),
        position_(problem.n),
        in_batch_(problem.variables, 0) {
    std::iota(active_.begin(), active_.end(), index_t{0});
    std::iota(position_.begin(), position_.end(), index_t{0});
    if (F_.empty()) {
      F_.assign(p_.n, 0.0);
      refresh(active_, F_);
    }
    terms();
  }

  DualSolution run() {
    DualSolution out;
    int since = 0;
    double gained = 0;
    bool stuck = false;
    const auto finished = [&] {
      return violation() <= options_.tol || out.batches >= options_.max_iter || out.steps >= options_.max_steps ||
             out.stopped || stuck;
    };
    for (;; ++out.batches) {
      find_extremes();
      if (finished()) {
        if (shrunk()) {
          restore();
          since = 0;
          find_extremes();
        }
        if (finished()) break;
      }
      if (options_.shrinking && !in_memory_ && out.batches * size_ > kPatience * p_.n && ++since % 4 == 0) shrink();
      choose();
      load();
      const BatchProgress progress = solve_batch<T>(batch_, kBatchAccuracy, 0.5 * options_.tol, 100 * batch_.size);
      out.steps += progress.steps;
      gained += progress.gain;
      store();
      if ((out.batches + 1) % kCheckInterval == 0) {
        stuck = gained <= kRounding * terms();
        gained = 0;
      }
      out.stopped = monitor_.report({out.batches + 1, violation(), -1.0});
    }
    out.violation = violation();
    const std::array<double, 2> level = {middle(0), p_.groups == 2 ? middle(1) : 0.0};
    out.bias = p_.groups == 2 ? 0.5 * (level[1] + level[0]) : level[0];
    out.rho = p_.groups == 2 ? 0.5 * (level[1] - level[0]) : 0.0;
    out.alpha = std::move(a_);
    out.F = std::move(F_);
    return out;
  }

 private:
  bool shrunk() const { return static_cast<index_t>(active_.size()) < p_.n; }
  bool may_rise(index_t v) const { return p_.sign[v] > 0 ? a_[v] < p_.upper[v] : a_[v] > 0; }
  bool may_fall(index_t v) const { return p_.sign[v] > 0 ? a_[v] > 0 : a_[v] < p_.upper[v]; }
  int group(index_t v) const { return p_.groups == 2 && p_.sign[v] < 0; }
  // The violation of the optimality conditions, in the worse group; -inf if no pair can move.
  double violation() const {
    const double first = high_[0] - low_[0];
    return p_.groups == 2 ? std::max(first, high_[1] - low_[1]) : first;
  }
  double value(index_t v, index_t position) const { return p_.target[v] - F_[position]; }

  template <class Visit>
  void each(const Visit& visit) const {
    for (index_t shift = 0; shift < p_.variables; shift += p_.n)
      for (index_t k = 0; k < static_cast<index_t>(active_.size()); ++k) {
        const index_t v = shift + active_[k];
        visit(v, k, value(v, k));
      }
  }

  // The largest sum of absolute values of the objective's terms so far.
  double terms() {
    double sum = 0;
    each([&](index_t v, index_t k, double) { sum += a_[v] * (std::abs(p_.target[v]) + std::abs(F_[k])); });
    return terms_ = std::max(terms_, sum);
  }

  void find_extremes() {
    high_.fill(-kInfinity);
    low_.fill(kInfinity);
    each([&](index_t v, index_t, double e) {
      const int g = group(v);
      if (e > high_[g] && may_rise(v)) high_[g] = e;
      if (e < low_[g] && may_fall(v)) low_[g] = e;
    });
    if (violation() == kInfinity) throw std::invalid_argument("Kernel values are too large: scores overflow.");
  }

  // The next batch: the variables that were new in the last one, and the worst violators from both ends of each group.
  void choose() {
    std::array<std::vector<std::pair<double, index_t>>, 2> up, down;
    std::vector<index_t> kept(fresh_);
    for (index_t v : order_) in_batch_[v] = 0;
    each([&](index_t v, index_t, double e) {
      const int g = group(v);
      if (e > low_[g] && may_rise(v)) up[g].emplace_back(-e, v);
      if (e < high_[g] && may_fall(v)) down[g].emplace_back(e, v);
    });
    const index_t room = size_ - std::min<index_t>(static_cast<index_t>(kept.size()), size_ / 2);
    kept.resize(size_ - room);
    order_ = kept;
    for (index_t v : order_) in_batch_[v] = 1;
    fresh_.clear();
    const auto worst = [&](auto& list, index_t most) {
      const index_t m = std::min<index_t>(most, static_cast<index_t>(list.size()));
      std::nth_element(list.begin(), list.begin() + m, list.end());
      std::sort(list.begin(), list.begin() + m);
    };
    const auto take = [&](const auto& list, index_t most) {
      for (index_t k = 0, taken = 0; k < static_cast<index_t>(list.size()) && taken < most; ++k) {
        if (k >= size_) break;
        const index_t v = list[k].second;
        if (in_batch_[v]) continue;
        in_batch_[v] = 1;
        fresh_.push_back(v);
        ++taken;
      }
    };
    for (int g = 0; g < p_.groups; ++g) {
      const index_t goal = room * (g + 1) / p_.groups, begin = static_cast<index_t>(fresh_.size());
      worst(up[g], size_);
      worst(down[g], size_);
      take(up[g], (goal - begin) / 2);
      take(down[g], goal - static_cast<index_t>(fresh_.size()));
      take(up[g], goal - static_cast<index_t>(fresh_.size()));
    }
    order_.insert(order_.end(), fresh_.begin(), fresh_.end());
  }

  // Gathers the kernel rows of the batch and sets it up as a small problem.
  void load() {
    ++time_;
    const index_t m = static_cast<index_t>(order_.size()), n = p_.n;
    rows_.assign(m, nullptr);
    if (in_memory_)
      for (index_t k = 0; k < m; ++k) rows_[k] = source_.kept(order_[k] % n);
    else
      fetch();
    batch_.resize(m, p_.groups);
    std::vector<index_t> at(m);
    for (index_t c = 0; c < m; ++c) at[c] = position_[order_[c] % n];
    const index_t parts = parts_for(m * m, 1 << 13);
    parallel_for(parts, [&](index_t part) {  // the cells are far apart in memory, so threads hide its latency
      for (index_t r = range_begin(m, parts, part); r < range_begin(m, parts, part + 1); ++r)
        gather<T>(rows_[r], at.data(), m, batch_.K.data() + r * batch_.size);
    });
    for (index_t r = 0; r < m; ++r) {
      const index_t v = order_[r];
      batch_.e[r] = value(v, at[r]);
      batch_.a[r] = a_[v];
      batch_.sign[r] = p_.sign[v];
      batch_.upper[r] = p_.upper[v];
      batch_.mark(r);
      batch_.diagonal[r] = batch_.K[r * batch_.size + r];
    }
  }

  // The kernel rows of the batch from the cache; missing rows are computed first.
  void fetch() {
    const index_t m = static_cast<index_t>(order_.size()), n = p_.n;
    std::vector<index_t> missing;
    for (index_t k = 0; k < m; ++k) {
      rows_[k] = cache_.find(order_[k] % n, time_);
      if (!rows_[k]) missing.push_back(order_[k] % n);
    }
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    if (missing.empty()) return;
    std::vector<T*> where(missing.size());
    cache_.claim(missing.data(), static_cast<index_t>(missing.size()), time_, where.data());
    source_.rows(missing.data(), static_cast<index_t>(missing.size()), where.data());
    for (index_t k = 0; k < m; ++k)
      if (!rows_[k]) rows_[k] = cache_.find(order_[k] % n, time_);
  }

  // Writes the batch's solution back and updates F.
  void store() {
    std::vector<const T*> moved;
    std::vector<double> step;
    for (index_t r = 0; r < static_cast<index_t>(order_.size()); ++r) {
      const index_t v = order_[r];
      const double change = p_.sign[v] * (batch_.a[r] - a_[v]);
      if (change == 0.0) continue;
      a_[v] = batch_.a[r];
      moved.push_back(rows_[r]);
      step.push_back(change);
    }
    add_rows<T>(moved, step, static_cast<index_t>(active_.size()), F_.data());
  }

  // Shrinking: removes points none of whose variables can be chosen, being at a bound with a gradient that points
  // outwards.
  void shrink() {
    const index_t count = static_cast<index_t>(active_.size());
    std::vector<char> needed(count, 0);
    each([&](index_t v, index_t k, double e) {
      const bool rise = may_rise(v), fall = may_fall(v);
      const int g = group(v);
      if ((rise && fall) || (rise && e >= low_[g]) || (fall && e <= high_[g])) needed[k] = 1;
    });
    std::vector<index_t> keep;
    for (index_t k = 0; k < count; ++k)
      if (needed[k]) keep.push_back(k);
    const index_t left = static_cast<index_t>(keep.size());
    if (left > count - kWorthShrinking * count || left < size_) return;
    auto kept = cache_.rows();
    parallel_for(parts_for(static_cast<index_t>(kept.size()), 16), [&](index_t part) {
      const index_t rows = static_cast<index_t>(kept.size()), parts = parts_for(rows, 16);
      for (index_t r = range_begin(rows, parts, part); r < range_begin(rows, parts, part + 1); ++r)
        for (index_t k = 0; k < left; ++k) kept[r][k] = kept[r][keep[k]];
    });
    std::fill(position_.begin(), position_.end(), -1);
    for (index_t k = 0; k < left; ++k) {
      F_[k] = F_[keep[k]];
      active_[k] = active_[keep[k]];
      position_[active_[k]] = k;
    }
    active_.resize(left);
    F_.resize(left);
    std::erase_if(fresh_, [&](index_t v) { return position_[v % p_.n] < 0; });
    source_.restrict(active_.data(), left);
  }

  // Reactivates all points and recomputes F of those that were shrunk.
  void restore() {
    std::vector<index_t> others;
    for (index_t i = 0; i < p_.n; ++i)
      if (position_[i] < 0) others.push_back(i);
    std::vector<double> made(others.size());
    refresh(others, made);
    std::vector<double> all(p_.n);
    for (index_t k = 0; k < static_cast<index_t>(active_.size()); ++k) all[active_[k]] = F_[k];
    for (index_t k = 0; k < static_cast<index_t>(others.size()); ++k) all[others[k]] = made[k];
    F_ = std::move(all);
    active_.resize(p_.n);
    std::iota(active_.begin(), active_.end(), index_t{0});
    position_ = active_;
    source_.restrict(active_.data(), p_.n);
    cache_.clear();
  }

  // Computes F at some points from the coefficients alone.
  void refresh(const std::vector<index_t>& points, std::vector<double>& F) {
    std::vector<index_t> support;
    std::vector<double> coefficient;
    for (index_t i = 0; i < p_.n; ++i) {
      double c = 0;
      for (index_t v = i; v < p_.variables; v += p_.n) c += p_.sign[v] * a_[v];
      if (c != 0.0) support.push_back(i), coefficient.push_back(c);
    }
    if (support.empty()) return;
    if (in_memory_) {
      std::vector<const T*> rows;
      for (index_t i : support) rows.push_back(source_.kept(i));
      add_rows<T>(rows, coefficient, p_.n, F.data());
      return;
    }
    const index_t width = static_cast<index_t>(points.size());
    source_.restrict(points.data(), width);
    std::vector<T> buffer(static_cast<std::size_t>(std::min<index_t>(kBatch, support.size())) * width);
    for (index_t begin = 0; begin < static_cast<index_t>(support.size()); begin += kBatch) {
      const index_t m = std::min<index_t>(kBatch, static_cast<index_t>(support.size()) - begin);
      std::vector<T*> out(m);
      for (index_t r = 0; r < m; ++r) out[r] = buffer.data() + r * width;
      source_.rows(support.data() + begin, m, out.data());
      const std::vector<const T*> rows(out.begin(), out.end());
      const std::vector<double> step(coefficient.begin() + begin, coefficient.begin() + begin + m);
      add_rows<T>(rows, step, width, F.data());
    }
  }

  // The level of e in a group: the mean over variables strictly inside their bounds, which at the optimum all have the
  // same e; without such variables the middle of the admissible interval.
  double middle(int g) const {
    double sum = 0;
    index_t count = 0;
    each([&](index_t v, index_t, double e) {
      if (group(v) == g && a_[v] > 0 && a_[v] < p_.upper[v]) sum += e, ++count;
    });
    if (count) return sum / static_cast<double>(count);
    if (high_[g] == -kInfinity) return low_[g] == kInfinity ? 0.0 : low_[g];
    return low_[g] == kInfinity ? high_[g] : 0.5 * (high_[g] + low_[g]);
  }

  RowSource<T>& source_;
  const DualProblem& p_;
  const DecompositionOptions& options_;
  Monitor& monitor_;
  bool in_memory_;  // whether the source holds all rows in memory
  index_t size_;
  RowCache<T> cache_;
  std::vector<double> a_, F_;
  std::vector<index_t> active_, position_, order_, fresh_;
  std::vector<char> in_batch_;
  std::vector<const T*> rows_;
  Batch<T> batch_;
  std::array<double, 2> high_{}, low_{};
  double terms_ = 0;
  index_t time_ = 0;
};

}  // namespace

template <class T>
void ProgramRows<T>::restrict(const index_t* columns, index_t count) {
  some_ = count == all_.n ? nullptr : std::make_unique<Gathered<T>>(all_, columns, count);
}

template <class T>
void ProgramRows<T>::rows(const index_t* which, index_t m, T* const* out) {
  const Gathered<T> batch(all_, which, m);
  kernel_rows<T>(program_, batch.points, some_ ? some_->points : all_, out);
}

template <class T>
void FullRows<T>::rows(const index_t* which, index_t m, T* const* out) {
  buffer_.resize(static_cast<std::size_t>(m) * n_);
  fill_(which, m, buffer_.data());
  const bool all = columns_.empty() || static_cast<index_t>(columns_.size()) == n_;
  for (index_t r = 0; r < m; ++r) {
    const T* from = buffer_.data() + r * n_;
    if (all)
      std::copy(from, from + n_, out[r]);
    else
      for (std::size_t c = 0; c < columns_.size(); ++c) out[r][c] = from[columns_[c]];
  }
}

template <class T>
DualSolution decompose(RowSource<T>& source, const DualProblem& problem, std::vector<double> alpha,
                       std::vector<double> scores, const DecompositionOptions& options, Monitor& monitor) {
  return Decomposition<T>(source, problem, std::move(alpha), std::move(scores), options, monitor).run();
}

#define HINGE_DECOMPOSE(T)                                                                                        \
  template class ProgramRows<T>;                                                                                  \
  template class FullRows<T>;                                                                                     \
  template DualSolution decompose<T>(RowSource<T>&, const DualProblem&, std::vector<double>, std::vector<double>, \
                                     const DecompositionOptions&, Monitor&);
HINGE_DECOMPOSE(float)
HINGE_DECOMPOSE(double)
#undef HINGE_DECOMPOSE

}  // namespace hinge
