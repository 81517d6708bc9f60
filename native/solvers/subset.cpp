#include "solvers/subset.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace hinge {
namespace {

class Search {
 public:
  Search(const double* M, index_t d, index_t most, Monitor& monitor)
      : d_(d), order_(d + 1), most_(most), monitor_(monitor), level_(d + 1, std::vector<double>(order_ * order_)) {
    out_.rss.assign(d + 1, std::numeric_limits<double>::infinity());
    out_.member.assign(d + 1, 0);
    name_.resize(d);
    std::iota(name_.begin(), name_.end(), index_t{0});
    std::vector<double>& A = level_[0];
    std::copy(M, M + order_ * order_, A.begin());
    offer(0, 0, A[order_ * order_ - 1]);
    for (index_t j = 0; j < d; ++j) sweep(A, j);
    // Features whose removal raises RSS most come first: the largest subtrees are then cut first.
    std::vector<double> need(d);
    for (index_t j = 0; j < d; ++j) need[j] = cost(A, j);
    std::stable_sort(name_.begin(), name_.end(), [&](index_t a, index_t b) { return need[a] > need[b]; });
    std::vector<double> B(A);
    for (index_t i = 0; i < order_; ++i)
      for (index_t j = 0; j < order_; ++j) A[i * order_ + j] = B[place(i) * order_ + place(j)];
    backward();
  }

  Subsets run() {
    visit(0, all(), 0, d_);
    return std::move(out_);
  }

 private:
  index_t place(index_t i) const { return i < d_ ? name_[i] : d_; }
  std::uint64_t all() const { return (std::uint64_t{1} << d_) - 1; }

  // Moves feature k into the model or out of it (a sweep).
  HINGE_INLINE void sweep(std::vector<double>& A, index_t k) {
    double* a = A.data();
    const double pivot = 1.0 / a[k * order_ + k];
    for (index_t i = 0; i < order_; ++i) {
      if (i == k) continue;
      const double c = a[i * order_ + k] * pivot;
      for (index_t j = 0; j < order_; ++j)
        if (j != k) a[i * order_ + j] -= c * a[k * order_ + j];
      a[i * order_ + k] = -c;
    }
    for (index_t j = 0; j < order_; ++j) a[k * order_ + j] *= pivot;
    a[k * order_ + k] = pivot;
  }

  // The increase of RSS when feature k leaves the model.
  double cost(const std::vector<double>& A, index_t k) const {
    const double w = A[k * order_ + d_];
    return w * w / A[k * order_ + k];
  }

  void offer(std::uint64_t set, index_t size, double rss) {
    if (size > most_ || !(rss < out_.rss[size])) return;
    out_.rss[size] = rss;
    std::uint64_t member = 0;
    for (index_t j = 0; j < d_; ++j)
      if (set >> j & 1) member |= std::uint64_t{1} << name_[j];
    out_.member[size] = member;
  }

  // Greedy sets of every size, so that the bounds are tight early.
  void backward() {
    std::vector<double> A = level_[0];
    std::uint64_t set = all();
    for (index_t size = d_; size > 0; --size) {
      offer(set, size, A[order_ * order_ - 1]);
      index_t least = -1;
      for (index_t j = 0; j < d_; ++j)
        if ((set >> j & 1) && (least < 0 || cost(A, j) < cost(A, least))) least = j;
      sweep(A, least);
      set &= ~(std::uint64_t{1} << least);
    }
  }

  // Features before `first` stay in the model.
  void visit(index_t depth, std::uint64_t set, index_t first, index_t size) {
    if ((++out_.nodes & 4095) == 0) monitor_.poll();
    const std::vector<double>& A = level_[depth];
    const double rss = A[order_ * order_ - 1];
    offer(set, size, rss);
    for (index_t k = first; k < d_; ++k) {
      // The subtree of this child: the features before k stay, those after k may leave.
      const index_t least = size - (d_ - first) + (k - first), largest = size - 1;
      const double bound = rss + cost(A, k);
      bool hopeless = true;
      for (index_t s = std::max<index_t>(least, 1); s <= std::min(largest, most_) && hopeless; ++s)
        hopeless = out_.rss[s] <= bound;
      if (hopeless) continue;
      level_[depth + 1] = A;
      sweep(level_[depth + 1], k);
      visit(depth + 1, set & ~(std::uint64_t{1} << k), k + 1, size - 1);
    }
  }

  const index_t d_, order_, most_;
  Monitor& monitor_;
  std::vector<std::vector<double>> level_;
  std::vector<index_t> name_;
  Subsets out_;
};

// Grows sets feature by feature in the order of their indices, as long as they might beat the best known set. A level
// holds the upper triangle of M for the features that may still join, and y, with the features of the set eliminated.
class Growth {
 public:
  Growth(const double* M, index_t d, index_t most, Monitor& monitor)
      : d_(d),
        order_(d + 1),
        most_(most),
        monitor_(monitor),
        level_(most + 1, std::vector<double>(order_ * order_)),
        scratch_(order_ * order_) {
    out_.rss.assign(most + 1, std::numeric_limits<double>::infinity());
    out_.member.assign(most + 1, 0);
    std::copy(M, M + order_ * order_, level_[0].begin());
  }

  Subsets run() {
    out_.rss[0] = level_[0][order_ * order_ - 1];
    if (most_ > 0) grow(0, 0, 0);
    return std::move(out_);
  }

 private:
  static constexpr double kDependent = 1e-9;  // a column whose residual square is below this share depends on the set
  static constexpr index_t kWorth = 6;        // remaining features from which the bound costs less than the search

  void grow(index_t size, index_t first, std::uint64_t set) {
    const double* A = level_[size].data();
    const double rss = A[order_ * order_ - 1];
    if ((++scans_ & 1023) == 0) monitor_.poll();
    out_.nodes += d_ - first;
    for (index_t r = first; r < d_; ++r) {
      const double pivot = A[r * order_ + r], moment = A[r * order_ + d_];
      if (pivot <= kDependent || !(rss - moment * moment / pivot < out_.rss[size + 1])) continue;
      out_.rss[size + 1] = rss - moment * moment / pivot;
      out_.member[size + 1] = set | std::uint64_t{1} << r;
    }
    if (size + 1 == most_ || hopeless(A, size, first)) return;
    if (size + 2 == most_) return pairs(A, rss, first, set);
    double* B = level_[size + 1].data();
    for (index_t r = first; r + 1 < d_; ++r) {
      const double* row = A + r * order_;
      if (row[r] <= kDependent) continue;
      for (index_t i = r + 1; i <= d_; ++i) {
        const double c = row[i] / row[r];
        for (index_t j = i; j <= d_; ++j) B[i * order_ + j] = A[i * order_ + j] - c * row[j];
      }
      grow(size + 1, r + 1, set | std::uint64_t{1} << r);
    }
  }

  // Whether all remaining features together are no better than the best known set of any reachable size.
  bool hopeless(const double* A, index_t size, index_t first) {
    const index_t reach = size + d_ - first;
    if (reach > most_ || d_ - first < kWorth) return false;
    std::copy(A + first * order_, A + order_ * order_, scratch_.begin() + first * order_);
    double* B = scratch_.data();
    for (index_t r = first; r < d_; ++r) {
      const double* row = B + r * order_;
      if (row[r] <= kDependent) continue;
      for (index_t i = r + 1; i <= d_; ++i) {
        const double c = row[i] / row[r];
        for (index_t j = i; j <= d_; ++j) B[i * order_ + j] -= c * row[j];
      }
    }
    const double least = B[order_ * order_ - 1];
    for (index_t s = size + 2; s <= reach; ++s)
      if (least < out_.rss[s]) return false;
    return true;
  }

  // The last two features: after eliminating the first, only the diagonal and y are needed.
  HINGE_INLINE void pairs(const double* A, double rss, index_t first, std::uint64_t set) {
    double& best = out_.rss[most_];
    for (index_t r = first; r + 1 < d_; ++r) {
      const double* row = A + r * order_;
      if (row[r] <= kDependent) continue;
      const double c = 1.0 / row[r], own = rss - c * row[d_] * row[d_];
      for (index_t i = r + 1; i < d_; ++i) {
        const double pivot = A[i * order_ + i] - c * row[i] * row[i];
        const double moment = A[i * order_ + d_] - c * row[i] * row[d_];
        if (pivot <= kDependent || !(moment * moment > (own - best) * pivot)) continue;
        best = own - moment * moment / pivot;
        out_.member[most_] = set | std::uint64_t{1} << r | std::uint64_t{1} << i;
      }
      out_.nodes += d_ - 1 - r;
    }
    if ((++scans_ & 1023) == 0) monitor_.poll();
  }

  const index_t d_, order_, most_;
  Monitor& monitor_;
  std::vector<std::vector<double>> level_;
  std::vector<double> scratch_;
  std::int64_t scans_ = 0;
  Subsets out_;
};

}  // namespace

Subsets best_subsets(const double* M, index_t d, index_t most, Monitor& monitor) {
  return Search(M, d, most, monitor).run();
}

Subsets grow_subsets(const double* M, index_t d, index_t most, Monitor& monitor) {
  return Growth(M, d, most, monitor).run();
}

}  // namespace hinge
