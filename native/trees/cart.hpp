// Classification and regression trees (Breiman et al. 1984), on sorted values or on bins.
//
// A split of a node with weight W into L and R is scored by the decrease in impurity  W Q - W_L Q_L - W_R Q_R, where Q
// is
//   gini 1 - sum p_c^2 | entropy -sum p_c log2 p_c | misclassification 1 - max p_c            (classes)
//   squared  mean (y - mean)^2 | poisson  mean half deviance | absolute  mean |y - median|    (regression)
//   squared  mean ||y - mean||^2                                      (several targets; one-hot classes give gini)
// Candidates are the midpoints between adjacent values in the node. For categories they are two-set splits along the
// order of the means, which includes the best one for two classes and for squared error; with three or more classes
// they are all two-set splits of up to 8 categories, otherwise those along the orders of each class's proportion.
#pragma once
#include <algorithm>
#include <bit>
#include <memory>
#include <variant>
#include <vector>

#include "core/random.hpp"
#include "trees/bins.hpp"
#include "trees/nodes.hpp"

namespace hinge::trees {

// Every feature is sorted once; splitting a node preserves the order in its children.
struct Sorted {
  struct Entry {
    std::uint32_t row, code;
  };
  index_t rows = 0, cols = 0;
  std::vector<Feature> features;  // low = high = the distinct values
  std::vector<Entry> entries;     // cols x rows; missing values last, with code kAbsent
};
constexpr std::uint32_t kAbsent = 0xffffffffu;

template <class T>
Sorted sort_columns(const Table<T>& x, const std::vector<std::uint8_t>& categorical);

struct Nonzeros;  // nonzeros.hpp

// Codes of a table (cols x rows), of whose values only the bins are known: a bin stands for its smallest one.
struct CodedTable {
  const std::uint8_t* codes;
  index_t rows;
  std::vector<double> values;  // cols x kBins
  double at(index_t i, index_t j) const { return values[j * kBins + codes[j * rows + i]]; }
};

// A dense table without preprocessing: random thresholds need only the smallest and largest value in a node.
struct Cells {
  std::variant<Table<float>, Table<double>, CodedTable> table;
  index_t rows = 0, cols = 0;
  std::vector<Feature> features;  // which are categories; of a coded table, the bins of the others
  // out[i] = the value of column j in row which[i]
  void gather(const std::uint32_t* which, index_t m, index_t j, double* out) const {
    std::visit(
        [&](const auto& t) {
          for (index_t i = 0; i < m; ++i) out[i] = static_cast<double>(t.at(which[i], j));
        },
        table);
  }
  // The threshold that parts values as t parts what stands for them: t itself, or the edge of a bin that t lies within.
  double settled(index_t j, double t) const {
    const Feature& f = features[j];
    const auto above = std::upper_bound(f.low.begin(), f.low.end(), t) - f.low.begin();
    if (above == 0 || above == static_cast<std::ptrdiff_t>(f.low.size())) return t;
    return known_values && f.high[above - 1] <= t ? t : f.edge[above - 1];
  }
  bool known_values = true;  // bins hold no values beyond their `low` and `high`
};

// The representations of a table on which a tree can be grown.
struct Forms {
  const Sorted* sorted = nullptr;
  const Bins* bins = nullptr;
  const Nonzeros* nonzeros = nullptr;
  const Cells* cells = nullptr;
};

enum class Criterion { gini, entropy, misclassification, squared, absolute, poisson };

struct CartOptions {
  Criterion criterion = Criterion::gini;
  int classes = 0;                                          // 0: regression
  int targets = 1;                                          // more than one: vector targets, whose scores are added
  int max_depth = 0, max_leaf_nodes = 0, max_features = 0;  // 0: no limit
  double min_samples_split = 2, min_samples_leaf = 1, min_weight_leaf = 0, min_decrease = 0;
  bool random_thresholds = false;
  std::vector<std::int8_t> monotone;
};

struct CartTree {
  Nodes nodes;
  std::vector<double> impurity;
};

// The rows of a tree: their numbers and weights (all positive), and whether the weights count in min_samples_*.
struct CartRows {
  std::vector<std::uint32_t> row;
  const double* weight = nullptr;  // per row of the table, or null
  bool frequency = false;          // weights are counts
};

// Exactly one of the representations is given. y holds class codes or targets; the targets of one row are adjacent.
CartTree grow_cart(const Forms& table, const double* y, const CartRows& rows, const CartOptions& options,
                   std::uint64_t seed);

// The number of times each row is drawn for one tree of a bagged ensemble. `order` lists the rows in an order that
// depends on their contents only, and `count` is the number of copies of each (null: one). The draws are therefore the
// same whether a row is repeated or weighted, and wherever it is in the table.
std::vector<double> bootstrap(const std::vector<std::uint32_t>& order, const double* count, index_t draws,
                              std::uint64_t seed, std::uint64_t tree);
// Scales the weights so that all classes that occur have the same total weight and the overall sum is unchanged; once
// for each target, with the given numbers of classes. y holds the codes of one target, or `targets` indicators per row.
void balance_classes(std::vector<double>& weight, const double* y, int targets, const std::vector<int>& classes);
// Hashes of the contents of rows, started with the target and continued cell by cell, and the rows sorted by them.
inline std::uint64_t content_key(double y) { return mix64(std::bit_cast<std::uint64_t>(y)); }
template <class T>
std::uint64_t content_key(std::uint64_t key, T cell) {
  // Hashed as float32, so that tables of either precision give the same draws; -0 and 0 are one value.
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(cell));
  return mix64(key ^ (bits << 1 == 0 ? 0u : bits));
}
std::vector<std::uint32_t> order_by_key(const std::vector<std::uint64_t>& key);
template <class T>
std::vector<std::uint64_t> content_keys(const Table<T>& x, const double* y);

}  // namespace hinge::trees
