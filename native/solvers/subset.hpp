// Best subsets for least squares, exactly, by branch and bound.
//
// Problem     for every size k:  min over sets S of k features of  RSS(S) = min_w ||y - X_S w||^2
// Given       the (d+1) x (d+1) matrix M = [X y]'[X y], positive definite in its X part
// Tree        the root holds all features; a child drops one, and its subtree may drop only features after that one.
//             Dropping never lowers RSS, so a node whose RSS is above the best known of every smaller size is cut.
// Perfect fits  if dependent features together leave no residual (more features than examples), supersets give no
//             bound, and sets are grown from the empty one instead
// Reference   Furnival & Wilson (1974), leaps and bounds; sweeps as in Goodnight (1979)
#pragma once
#include <cstdint>
#include <vector>

#include "core/hot.hpp"
#include "core/monitor.hpp"

namespace hinge {

struct Subsets {
  std::vector<double> rss;            // one per size 0 ... d
  std::vector<std::uint64_t> member;  // bit j: feature j is in the best set of that size
  std::int64_t nodes = 0;
};

// d <= 60. Sizes above `most` are not searched.
Subsets best_subsets(const double* M, index_t d, index_t most, Monitor& monitor);

// The same from small sets to large ones, for data that all features fit perfectly; M is scaled to a unit diagonal.
Subsets grow_subsets(const double* M, index_t d, index_t most, Monitor& monitor);

}  // namespace hinge
