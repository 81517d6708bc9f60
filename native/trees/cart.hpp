// Classification and regression trees (Breiman et al. 1984), on sorted values or on bins.
//
// A split of a node with weight W into L and R is judged by the fall of impurity  W Q - W_L Q_L - W_R Q_R, where Q is
//   gini 1 - sum p_c^2 | entropy -sum p_c log2 p_c | misclassification 1 - max p_c            (classes)
//   squared  mean (y - mean)^2 | poisson  mean half deviance | absolute  mean |y - median|    (regression)
//   squared  mean ||y - mean||^2                                      (several targets; one-hot classes give gini)
// Candidates are the midpoints between neighbouring values of the node (for categories: two-set splits in the order of
// their means, which holds the best one for two classes and for squared error; with three classes or more all two-set
// splits of up to 8 categories, else the orders of each class's share).
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

// Every feature sorted once: splitting a node keeps the order in its children.
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

// A dense table as it is: random thresholds need no more than the smallest and the largest value in a node.
struct Cells {
  std::variant<Table<float>, Table<double>, CodedTable> table;
  index_t rows = 0, cols = 0;
  std::vector<Feature> features;  // which are categories; of a coded table, the bins of the others
  // out[i] = the value of column j in the i-th of the rows
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

// The forms of a table that a tree can be grown on.
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
  int targets = 1;                                          // more than one: vectors, whose scores are added
  int max_depth = 0, max_leaf_nodes = 0, max_features = 0;  // 0: no limit
  double min_samples_split = 2, min_samples_leaf = 1, min_weight_leaf = 0, min_decrease = 0;
  bool random_thresholds = false;
  std::vector<std::int8_t> monotone;
};

struct CartTree {
  Nodes nodes;
  std::vector<double> impurity;
};

// Rows of a tree: their numbers and weights (all positive), and what each counts for in min_samples_*.
struct CartRows {
  std::vector<std::uint32_t> row;
  const double* weight = nullptr;  // per row of the table, or null
  bool frequency = false;          // weights are counts
};

// Exactly one of the forms is given. y holds class codes or targets, those of one row side by side.
CartTree grow_cart(const Forms& table, const double* y, const CartRows& rows, const CartOptions& options,
                   std::uint64_t seed);

// How often each row is drawn for one tree of a bagged ensemble. `order` lists the rows in an order that depends on
// their contents only, and `count` holds how many copies of each there are (null: one): so the draws are the same
// whether a row is repeated or weighted, and wherever it stands in the table.
std::vector<double> bootstrap(const std::vector<std::uint32_t>& order, const double* count, index_t draws,
                              std::uint64_t seed, std::uint64_t tree);
// Weights scaled so that every class that has any has the same sum, and the sum of all stays: once for each target,
// with the given numbers of classes. y holds the codes of a single target, or `targets` indicators per row.
void balance_classes(std::vector<double>& weight, const double* y, int targets, const std::vector<int>& classes);
// Hashes of the contents of rows, started with the target and continued cell by cell; and rows in their order.
inline std::uint64_t content_key(double y) { return mix64(std::bit_cast<std::uint64_t>(y)); }
template <class T>
std::uint64_t content_key(std::uint64_t key, T cell) {
  // As float32, so that both precisions draw alike; -0 and 0 are one value.
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(cell));
  return mix64(key ^ (bits << 1 == 0 ? 0u : bits));
}
std::vector<std::uint32_t> order_by_key(const std::vector<std::uint64_t>& key);
template <class T>
std::vector<std::uint64_t> content_keys(const Table<T>& x, const double* y);

}  // namespace hinge::trees
