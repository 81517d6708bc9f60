// Rosenblatt's perceptron, one epoch at a time.
//
// For every example in turn: if y (x'w + b) <= 0, a mistake (a score of zero is one, or w = 0 would never move), then
//   w <- w + rate y x,   b <- b + rate y.
// The average of the weights over all visits is w - late / visits, where `late` adds up t rate y x over the mistakes
// at visits t = 0, 1, 2, ...
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
  index_t visits = 0;
};

struct Mistakes {
  std::vector<std::int64_t> row, visit;
};

// y holds -1 and +1. X must have rows (dense by rows, or CSR).
Mistakes perceptron_epoch(const Design& X, const double* y, bool intercept, double rate, bool shuffle,
                          std::uint64_t seed, index_t epoch, PerceptronState& state, Monitor& monitor);

}  // namespace hinge
