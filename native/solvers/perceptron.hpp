// The perceptron, one epoch at a time: Rosenblatt's for two classes, and one vector per class for more.
//
// Two classes   if y (x'w + b) <= 0, a mistake (a score of zero counts as one, or w = 0 would never move), then
//               w <- w + rate s y x,   b <- b + rate s y
// k classes     if the highest score is that of g != y (ties go to the first class), then
//               w_y <- w_y + s x,   w_g <- w_g - s x, and the biases likewise
// The weight s of an example scales its step and the duration of its visit: the average of the weights over all visits
// is w - late / age, where `age` is the sum of s over the visits and `late` the sum of age times the step over the
// mistakes.
//
// Reference: Rosenblatt (1958); Freund & Schapire (1999) for the voted and averaged forms.
#pragma once
#include <cstdint>
#include <vector>

#include "core/design.hpp"
#include "core/monitor.hpp"

namespace hinge {

struct PerceptronState {
  double* w;
  double* late;
  double b = 0, late_b = 0;
  double age = 0;
};

struct Mistakes {
  std::vector<std::int64_t> row;
  std::vector<double> age;  // before the visit
};

// The order of the visits.
struct Visits {
  bool shuffle;
  std::uint64_t seed;
  index_t epoch;

  std::vector<index_t> order(index_t n) const;
};

// y holds -1 and +1; weight may be null, for ones. X must have rows (dense by rows, or CSR).
Mistakes perceptron_epoch(const Design& X, const double* y, const double* weight, bool intercept, double rate,
                          const Visits& visits, PerceptronState& state, Monitor& monitor);

// y holds 0 ... k-1. `w` and `late` have a row of k for every feature, and a last one for the bias if there is one;
// `age` is updated. Returns the number of mistakes.
std::int64_t multiclass_perceptron_epoch(const Design& X, const std::int32_t* y, const double* weight, index_t k,
                                         bool intercept, const Visits& visits, double* w, double* late, double& age,
                                         Monitor& monitor);

}  // namespace hinge
