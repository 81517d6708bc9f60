// The best stump for two classes under repeatedly changing sample weights, as in AdaBoost.
//
// Finds the same cut as grow_cart on sorted columns, but reads one byte per cell instead of a sorted entry and the row
// it points to. Each feature is divided once into at most 256 runs of sorted rows; a pass over the bytes gives the
// weights (a, b) of the two classes on the left of every run. The score of a cut is convex in (a, b) for every
// classification criterion, and inside a run a and b only grow, so no cut inside scores more than the best corner of
// the rectangle from (a, b) before the run to (a, b) after it. Only runs with a corner above the best cut between runs
// are searched.
#pragma once
#include <memory>

#include "trees/cart.hpp"
#include "trees/criteria.hpp"

namespace hinge::trees {

class Stumps {
 public:
  // Columns have no categories and no missing values; y holds 0 and 1.
  Stumps(std::shared_ptr<const Sorted> sorted, const double* y);

  index_t rows() const { return n_; }
  // weight: one positive number per row; each row counts as one. predicted (rows) receives the class of each row's
  // leaf. Of the options only the criterion and the limits on sizes and gain are used.
  CartTree grow(const double* weight, const CartOptions& options, std::uint8_t* predicted) const;

 private:
  struct Runs {                     // of one feature
    std::vector<index_t> begin;     // runs + 1: the start of each run in the sorted column
    std::vector<std::uint8_t> one;  // whether it holds a single value
    index_t size() const { return static_cast<index_t>(one.size()); }
  };
  struct Edges {                // of one feature, for one set of weights
    std::vector<double> w, s;   // weight and weight of class 1 left of each run, and in total
    std::vector<double> bound;  // upper bound of the scores of the cuts inside a run and at its end
    double best;                // score of the best admissible cut between runs
    Prefixes prefix;            // scratch
  };
  struct Cut;

  void make_runs();
  void make_codes();
  bool admissible(index_t count, double w, double total, const CartOptions& o) const;
  void measure(index_t group, const double* by_class, const CartOptions& o, std::vector<Edges>& edges) const;
  Cut look_inside(index_t feature, const Edges& edges, double least, const double* signed_weight,
                  const CartOptions& o) const;
  CartTree finish(const Cut& cut, const double* weight, const CartOptions& o, std::uint8_t* predicted) const;

  std::shared_ptr<const Sorted> sorted_;
  index_t n_, d_, groups_;
  std::vector<std::uint8_t> y_;
  std::vector<std::uint32_t> by_class_;  // rows of class 0, then of class 1
  index_t zeros_;                        // number of rows of class 0
  std::vector<Runs> runs_;
  std::vector<std::uint8_t> codes_;  // groups x rows (in the order of by_class_) x kAbreast: the run of each cell
};

}  // namespace hinge::trees
