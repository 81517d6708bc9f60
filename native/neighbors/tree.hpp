// A k-d tree: nearest neighbours in few dimensions without computing every pair.
#pragma once
#include <vector>

#include "neighbors/distance.hpp"

namespace hinge {

// A balanced tree over n points of dimension d, owned by the caller: node i has the children 2i + 1 and 2i + 2, each
// with half of its points, split at the median of the widest coordinate. Each node stores the bounding box of its
// points.
class KdTree {
 public:
  KdTree(const double* points, index_t n, index_t d, index_t leaf_size);

  // Returns the same keys and indices as nearest_of_all.
  Neighbours nearest(const Distance& distance, const double* queries, index_t m, index_t k, bool same) const;

  index_t rows() const { return n_; }
  index_t cols() const { return d_; }

 private:
  void measure(index_t node);
  void split(index_t node);
  void search(const Distance& distance, const double* query, index_t self, double margin, double* keys,
              Nearest& best) const;

  const double* points_;
  index_t n_, d_, inner_;  // the first `inner_` nodes have children
  index_t width_;          // largest number of points in a leaf
  std::vector<index_t> begin_, end_, order_;
  std::vector<double> low_, high_;  // a box of d intervals per node
  std::vector<double> lines_;       // coordinates of the points of leaves: d lines of `width_` per leaf
};

}  // namespace hinge
