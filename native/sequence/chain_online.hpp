// Trainers that visit one sequence at a time: the structured perceptron and the structured SVM.
#pragma once
#include "core/monitor.hpp"
#include "sequence/sequence.hpp"

namespace hinge {

// A labelled data set.
struct Labelled {
  Tokens x;
  const std::int32_t* y;
};

struct OnlineFit {
  std::vector<double> unary;   // attributes x labels
  std::vector<double> pair;    // labels x labels
  std::vector<double> cross;   // as in Layout
  std::vector<double> triple;  // labels x labels x labels, empty for a first-order chain
  int epochs = 0;
  bool done = false;               // perceptron: an epoch without a mistake; SVM: the gap is below the tolerance
  std::vector<double> mistakes;    // perceptron: mislabelled tokens in each epoch
  double primal = 0, gap = 0;      // SVM
  bool early = false;              // stopped because the held-out accuracy stopped improving
  std::vector<double> validation;  // held-out accuracy after each epoch; the best weights are returned
};

// Collins (2002): if the best labelling under w is wrong, w += features(y) - features(best). Returns the mean of all
// iterates with `average`, otherwise the last one.
OnlineFit chain_perceptron(const Labelled& data, const Potentials& constraints, int epochs, bool average,
                           std::uint64_t seed, bool shuffle, const HeldOut* held, Monitor& monitor);

// The structured SVM
//   J(w) = sum_i c_i max_y [ cost(y_i, y) - score(y_i) + score(y) ] + lambda/2 |w|^2,   cost = sum_t C[y_it, y_t]
// by block-coordinate Frank-Wolfe (Lacoste-Julien et al. 2013, algorithm 4) with pairwise steps (Lacoste-Julien & Jaggi
// 2015, algorithm 2), which converge linearly. The dual variables of a sequence are masses on its few active
// labellings: w = sum_i c_i/lambda [features(y_i) - sum_v mass_v features(v)]. Stops when the gap J - D, from a pass
// over all sequences at fixed w, is at most tolerance * J.
OnlineFit chain_svm(const Labelled& data, const double* weight, const Potentials& constraints, const double* cost,
                    double lambda, int epochs, double tolerance, std::uint64_t seed, const HeldOut* held,
                    Monitor& monitor);

}  // namespace hinge
