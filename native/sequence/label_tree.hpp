// Belief propagation on trees with logarithms: exact for any scores and any acyclic shape.
//
//   score(x, y) = sum_t s_t(y_t) + sum_{t not a root} T_t[y_parent(t), y_t]
//
// Messages are passed up to the roots and down again (Pearl 1982); with max instead of log-sum-exp they give the best
// labelling. A chain is the tree in which the parent of t is t - 1. T_t is the table of the model, or one table per
// node if label pairs have features.
#pragma once
#include "sequence/chain.hpp"

namespace hinge {

// Parents before children; throws std::invalid_argument if there is a cycle or a parent outside the sequence.
void tree_order(const std::int32_t* parent, index_t length, std::vector<index_t>& order);

// One tree: `parent` null for a chain; `tables` null, or length x labels x width scores of label pairs.
struct Tree {
  index_t length;
  const std::int32_t* parent;
  const double* tables;

  index_t up(index_t t) const { return parent ? parent[t] : t - 1; }
};

// Replaces scores by marginals; returns log Z. If `pairs` (labels x width) is given, adds to it the expected label
// pairs times `weight`. If `each` is given, writes to it the probability of each label pair at each node (length x
// labels x width, zero at roots).
double tree_posterior(const Potentials& p, const Tree& tree, double* scores, double weight, double* pairs, double* each,
                      ChainScratch& scratch);
double tree_log_partition(const Potentials& p, const Tree& tree, const double* scores, ChainScratch& scratch);
double tree_best(const Potentials& p, const Tree& tree, const double* scores, std::int32_t* best,
                 ChainScratch& scratch);
// The `count` best labellings, best first: labels (count x length) and scores; returns how many there are.
index_t tree_top(const Potentials& p, const Tree& tree, const double* scores, index_t count, std::int32_t* best,
                 double* value);

}  // namespace hinge
