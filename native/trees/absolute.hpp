// Sums of absolute deviations from the median, for all prefixes of a sequence.
#pragma once
#include <utility>
#include <vector>

#include "core/hot.hpp"

namespace hinge::trees {

// The weighted median of y (the midpoint of the interval of minimisers) and sum w |y - median|.
std::pair<double, double> median_and_loss(const std::vector<double>& y, const std::vector<double>& w);

struct AbsoluteError {
  struct Item {
    double y, w;
    std::uint32_t code;
  };
  std::vector<Item> items;  // in any order; missing values have code 0xffffffff

  std::vector<double> below, above;  // medians of the two sides of every cut, if `medians` was set

  // score[i] = -(loss of the items with code <= codes[i]) - (loss of the others), for i < n; codes increase.
  void scores(const std::uint32_t* codes, index_t n, bool missing_left, double* score, bool medians = false);

 private:
  // Losses, and medians unless that vector is empty, of the first t items of `order`, for every t.
  std::vector<double> losses(const std::vector<std::size_t>& order, const std::vector<std::size_t>& rank,
                             const std::vector<double>& sorted, std::vector<double>& medians);
};

}  // namespace hinge::trees
