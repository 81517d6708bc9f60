// Distances for nearest-neighbour search, and the k smallest found so far.
//
// Searches compare keys: a monotone function of the distance that needs no root. Only pair_key computes the key of a
// pair, in double; cheaper values (matrix products in float, bounds of boxes) only exclude pairs, with a margin for
// their rounding. Every search therefore finds the same neighbours; ties go to the smaller index.
#pragma once
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/hot.hpp"

namespace hinge {

enum class Metric : int {
  euclidean,  // sum of squares
  manhattan,  // sum of absolute values
  chebyshev,  // largest absolute value
  minkowski,  // sum of absolute values to the power p
  cosine,     // 2 - 2 cos for rows of length one; 2 if either is zero
};

struct Distance {
  Metric metric;
  double p;  // of minkowski
};

template <class T>
double pair_key(const Distance& distance, const T* a, const T* b, index_t d);

// out[j] = the key of a and point j, up to rounding, for n points whose coordinates are in rows of length `stride`.
void direct_keys(const Distance& distance, const double* a, const double* points, index_t stride, index_t n, index_t d,
                 double* out);

// The smallest key between a and any point of the box, up to rounding.
double box_key(const Distance& distance, const double* a, const double* low, const double* high, index_t d);

// The first j in [begin, n) with values[j] <= limit or not a number; n if there is none.
template <class T>
index_t next_within(const T* values, index_t begin, index_t n, T limit);

// A key summed over d terms that exceeds another by this factor also exceeds it in exact arithmetic.
inline double rounding_margin(index_t d) { return 1.0 + 16 * std::numeric_limits<double>::epsilon() * (d + 4.0); }

// The k smallest (key, index) so far, as a heap with the largest on top.
class Nearest {
 public:
  explicit Nearest(index_t k) : k_(k) { heap_.reserve(k); }

  // A larger key cannot be among the k smallest.
  double bound() const {
    return static_cast<index_t>(heap_.size()) < k_ ? std::numeric_limits<double>::infinity() : heap_.front().first;
  }

  void offer(double key, index_t index) {
    const std::pair<double, index_t> item{key, index};
    if (static_cast<index_t>(heap_.size()) < k_) {
      heap_.push_back(item);
      std::push_heap(heap_.begin(), heap_.end());
    } else if (item < heap_.front()) {
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.back() = item;
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  // Writes them in increasing order and empties the heap.
  void drain(double* key, index_t* index) {
    std::sort_heap(heap_.begin(), heap_.end());
    for (std::size_t i = 0; i < heap_.size(); ++i) {
      key[i] = heap_[i].first;
      index[i] = heap_[i].second;
    }
    heap_.clear();
  }

 private:
  index_t k_;
  std::vector<std::pair<double, index_t>> heap_;
};

// Keys and indices of the k nearest points of every query, row-major.
struct Neighbours {
  std::vector<double> key;
  std::vector<index_t> index;
};

}  // namespace hinge
