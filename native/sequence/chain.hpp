// Linear-chain models: scores, exact inference and the quantities that training needs.
//
//   score(x, y) = sum_t [ sum_a x_ta U[a, y_t] ] + sum_{t>0} T_t[y_{t-1}, y_t],   T_t = T + sum_a x_ta P_a
//                 (+ sum_{t>1} R[y_{t-2}, y_{t-1}, y_t] for chains of the second order: trigram.hpp)
//
// A token t has sparse attributes x_t; U is attributes x labels, T and each P_a are labels x labels. P (label pairs
// crossed with observations) is stored as the few entries that are learned; most models have none, and then T_t = T.
// Rows of every table are aligned and padded to a multiple of eight labels, so that loops over labels are a few whole
// vectors. Padded labels have the score minus infinity. A label pair, a first or a last label may be forbidden (minus
// infinity).
//
// Sums over label sequences use scaled probabilities (Rabiner 1989, section V.A), with a separate scale for each
// direction. Scaling can only lose terms below 1e-308; a sequence with a normaliser below 1e-200 is recomputed with
// logarithms (label_tree.hpp), so the result is accurate for any scores.
#pragma once
#include <cstdint>
#include <vector>

#include "core/aligned.hpp"
#include "core/hot.hpp"

namespace hinge {

using Table = std::vector<double, AlignedAllocator<double>>;

// Sequences of tokens with sparse attributes: rows of a CSR matrix, divided into sequences. These are views.
struct Tokens {
  index_t sequences = 0, tokens = 0, attributes = 0;
  const index_t* start = nullptr;           // sequences + 1 offsets into the tokens
  const index_t* indptr = nullptr;          // tokens + 1 offsets into attribute and value
  const std::int32_t* attribute = nullptr;  // in [0, attributes)
  const double* value = nullptr;            // null: every value is one
  const std::int32_t* parent = nullptr;     // null: chains; otherwise the parent within the sequence, -1 for a root

  index_t length(index_t i) const { return start[i + 1] - start[i]; }
};

// The position of each learned weight. The weights are one vector: for each attribute its labels, then the label
// pairs, then for each attribute its label pairs, then the label triples.
struct Layout {
  index_t attributes = 0, labels = 0;
  std::vector<index_t> begin;            // attributes + 1 offsets; empty: every attribute has every label
  std::vector<std::int32_t> label;       // label of each weight; empty as above
  std::vector<std::int32_t> pair;        // learned label pairs, previous * labels + next
  std::vector<index_t> cross;            // attributes + 1 offsets; empty: no attribute has weights for label pairs
  std::vector<std::int32_t> cross_pair;  // label pair of each such weight, ascending for each attribute
  std::vector<std::int32_t> triple;      // learned label triples, (first * labels + second) * labels + third

  index_t unary() const { return begin.empty() ? attributes * labels : begin.back(); }
  index_t crossed() const { return static_cast<index_t>(cross_pair.size()); }
  index_t before_triples() const { return unary() + static_cast<index_t>(pair.size()) + crossed(); }
  index_t size() const { return before_triples() + static_cast<index_t>(triple.size()); }
  bool plain() const { return cross_pair.empty() && triple.empty(); }  // label pairs have only the weights T
};

// The scores of one model, prepared for inference.
class Potentials {
 public:
  Potentials(index_t attributes, index_t labels);

  void forbid(const std::uint8_t* pairs, const std::uint8_t* first, const std::uint8_t* last);  // null: none
  void allocate() { unary.resize(attributes * width, 0.0); }
  void load(const Layout& layout, const double* w);        // entries outside the layout stay zero
  void load_pairs(const Layout& layout, const double* w);  // only T
  void load_triples(const Layout& layout, const double* w);
  void refresh();          // recomputes the tables derived from `pair`
  void refresh_triples();  // recomputes the tables derived from `triple`

  index_t attributes, labels, width;
  Table unary;           // attributes x width, once loaded
  Table pair, pair_t;    // labels x width: T and its transpose, with -inf where forbidden
  Table power, power_t;  // exp(T - shift) and its transpose
  double shift = 0;      // the largest entry of T
  Table pad;             // 0 for labels, -inf for padding
  Table first, last;     // 0 or -inf, padding 0

  std::vector<std::uint8_t> forbidden;  // labels x labels, empty: none

  // P: for each attribute its entries, ascending by cell = previous * width + next.
  std::vector<index_t> cross_begin;
  std::vector<std::int32_t> cross_cell;
  std::vector<double> cross;
  double scale = 1;  // of unary and cross: a trainer that shrinks all weights changes only this number

  // R and exp(R - triple_shift), arranged [second][first][third], the transposes [second][third][first]; rows of
  // `width`. Empty for a first-order chain.
  Table triple, triple_power, triple_power_t;
  double triple_shift = 0;

  bool crossed() const { return !cross.empty(); }
  bool second() const { return !triple.empty(); }
  index_t triple_cell(index_t first, index_t second, index_t third) const {
    return (second * labels + first) * width + third;
  }
  index_t triple_cell(index_t code) const {
    return triple_cell(code / (labels * labels), code / labels % labels, code % labels);
  }
  index_t cross_at(index_t attribute, index_t previous, index_t next) const;  // -1: not an entry
};

inline index_t padded(index_t labels) { return (labels + 7) / 8 * 8; }

inline void grow(Table& table, index_t n) {
  if (static_cast<index_t>(table.size()) < n) table.resize(n);
}

// The work space of one thread, which grows to the longest sequence.
struct ChainScratch {
  Table alpha, beta, buffer;
  std::vector<index_t> order;
};

// Scores of the tokens of one sequence, rows of `width`, including forbidden first and last labels.
void chain_scores(const Tokens& x, const Potentials& p, index_t sequence, double* scores);

// T_t of every token of one sequence (labels x width each).
void chain_tables(const Tokens& x, const Potentials& p, index_t sequence, double* tables);

// Replaces scores by marginals; returns log Z. If `pairs` (labels x width) is given, adds to it the expected label
// pairs times weight.
double chain_posterior(const Potentials& p, index_t length, double* scores, double weight, double* pairs,
                       ChainScratch& scratch);

double chain_log_partition(const Potentials& p, index_t length, const double* scores, ChainScratch& scratch);

// The labelling with the highest score, and that score.
double chain_viterbi(const Potentials& p, index_t length, const double* scores, std::int32_t* best,
                     ChainScratch& scratch);

// Divides the sequences into parts of about equal numbers of tokens, from the shape of the data alone.
std::vector<index_t> sequence_parts(const Tokens& x);

}  // namespace hinge
