#include "solve/subset.hpp"

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
    // Features that are hardest to do without come first: the largest subtrees are then the first to be cut.
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

  // Exchanges feature k between "in the model" and "out of it".
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

  // How much RSS rises when feature k leaves the model.
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

  // Greedy sets of every size, so that cutting starts early.
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

  // `first`: features before it are there to stay.
  void visit(index_t depth, std::uint64_t set, index_t first, index_t size) {
    if ((++out_.nodes & 4095) == 0) monitor_.poll();
    const std::vector<double>& A = level_[depth];
    const double rss = A[order_ * order_ - 1];
    offer(set, size, rss);
    for (index_t k = first; k < d_; ++k) {
      // Below this child: what stays before k, and anything of what comes after.
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

}  // namespace

Subsets best_subsets(const double* M, index_t d, index_t most, Monitor& monitor) {
  return Search(M, d, most, monitor).run();
}

}  // namespace hinge
