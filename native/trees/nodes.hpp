// A binary tree as arrays. Siblings are adjacent (right = left + 1); a leaf has feature -1.
#pragma once
#include <array>
#include <vector>

#include "core/hot.hpp"

namespace hinge::trees {

using Set = std::array<std::uint32_t, 8>;  // 256 bits: the categories that go left

inline bool contains(const std::uint32_t* set, unsigned code) { return (set[code >> 5] >> (code & 31)) & 1u; }

struct Nodes {
  std::vector<std::int32_t> feature;
  std::vector<double> threshold;
  std::vector<std::int32_t> left;
  std::vector<std::uint8_t> missing_left;
  std::vector<std::int32_t> set;    // index in `sets` for a categorical split; -1 for a numeric one
  std::vector<std::uint32_t> sets;  // 8 words each
  std::vector<double> value;        // `outputs` numbers per node
  std::vector<double> gain;         // decrease of the objective by the split; 0 in leaves
  std::vector<double> weight;       // weight (or Hessian) of the training rows in the node
  std::vector<std::int64_t> count;  // training rows in the node
  std::vector<std::uint8_t> bin;    // split on binned data: bins <= bin go left

  std::int32_t size() const { return static_cast<std::int32_t>(feature.size()); }

  std::int32_t add(double value_, double weight_, std::int64_t count_) {
    feature.push_back(-1), threshold.push_back(0), left.push_back(-1), missing_left.push_back(0), set.push_back(-1);
    value.push_back(value_), gain.push_back(0), weight.push_back(weight_), count.push_back(count_), bin.push_back(0);
    return size() - 1;
  }

  // Stores a split (split.hpp) in a node; the caller adds its children.
  template <class Split>
  void split(std::int32_t node, const Split& s) {
    feature[node] = s.feature;
    threshold[node] = s.threshold;
    bin[node] = static_cast<std::uint8_t>(s.bin);
    missing_left[node] = s.missing_left;
    gain[node] = s.gain;
    if (s.categorical) {
      set[node] = static_cast<std::int32_t>(sets.size() / 8);
      sets.insert(sets.end(), s.set.begin(), s.set.end());
    }
  }

  // The leaf of a row with the bins code(feature).
  template <class Code>
  std::int32_t leaf(const Code& code) const {
    std::int32_t node = 0;
    while (feature[node] >= 0) node = left[node] + !goes_left(node, code(feature[node]));
    return node;
  }

  // Whether a row with bin b of the node's feature goes left.
  bool goes_left(std::int32_t node, std::uint8_t b) const {
    if (b == 255) return missing_left[node];
    return set[node] >= 0 ? contains(sets.data() + 8 * set[node], b) : b <= bin[node];
  }
};

}  // namespace hinge::trees
