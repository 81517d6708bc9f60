// Exact inference on one labelled structure at a time: for a chain by the vector recursions of chain.hpp, for a tree or
// a model with observed label pairs by the messages of label_tree.hpp, for a second-order chain by the recursions of
// trigram.hpp.
#pragma once
#include "sequence/chain.hpp"
#include "sequence/label_tree.hpp"
#include "sequence/trigram.hpp"

namespace hinge {

// The work space of one thread. x and p must outlive it; p may change between sequences.
class SequenceReader {
 public:
  SequenceReader(const Tokens& x, const Potentials& p) : x_(x), p_(p) {}

  // Makes sequence i (not empty) the current one; scores: length x width.
  void read(index_t i, double* scores);
  double* read(index_t i);  // into an internal table

  index_t length() const { return tree_.length; }
  index_t parent(index_t t) const { return tree_.up(t); }
  double pair(index_t t, index_t before, index_t label) const {
    return (tree_.tables ? tree_.tables + t * p_.labels * p_.width : p_.pair.data())[before * p_.width + label];
  }
  double value(const double* scores, const std::int32_t* labels) const;

  // As the functions of chain.hpp. `each`: keep the probabilities of the label pairs at every token. If `triples` is
  // given, adds to it the expected label triples times weight (arranged as p.triple).
  double posterior(double* scores, double weight, double* pairs, bool each = false, double* triples = nullptr);
  double log_partition(const double* scores);
  double best(const double* scores, std::int32_t* labels);
  index_t top(const double* scores, index_t count, std::int32_t* best, double* value) const;

  // Calls body(entry of p.cross, attribute's value times probability of its label pair) for the current sequence, after
  // posterior(..., each = true).
  template <class F>
  void each_cross(F&& body) const {
    for (index_t t = 0; t < length(); ++t) {
      if (parent(t) < 0) continue;
      const double* table = each_.data() + t * p_.labels * p_.width;
      const index_t token = x_.start[i_] + t;
      for (index_t at = x_.indptr[token]; at < x_.indptr[token + 1]; ++at) {
        const index_t a = x_.attribute[at];
        const double v = x_.value ? x_.value[at] : 1.0;
        for (index_t k = p_.cross_begin[a]; k < p_.cross_begin[a + 1]; ++k) body(k, v * table[p_.cross_cell[k]]);
      }
    }
  }

  // Calls body(cell of p.triple) for the label triples of a labelling.
  template <class F>
  void triples_of(const std::int32_t* labels, F&& body) const {
    if (!p_.second()) return;
    for (index_t t = 2; t < length(); ++t) body(p_.triple_cell(labels[t - 2], labels[t - 1], labels[t]));
  }

  // Calls body(entry of p.cross, value) for the entries that are active for the labels of token t and its parent.
  template <class F>
  void cross_of(index_t t, index_t before, index_t label, F&& body) const {
    if (!p_.crossed()) return;
    const index_t token = x_.start[i_] + t;
    for (index_t at = x_.indptr[token]; at < x_.indptr[token + 1]; ++at) {
      const index_t k = p_.cross_at(x_.attribute[at], before, label);
      if (k >= 0) body(k, x_.value ? x_.value[at] : 1.0);
    }
  }

 private:
  bool plain() const { return !tree_.parent && !tree_.tables; }

  const Tokens& x_;
  const Potentials& p_;
  index_t i_ = 0;
  Tree tree_{};
  ChainScratch scratch_;
  Table scores_, tables_, each_;
};

// Held-out sequences for early stopping.
struct HeldOut {
  Tokens x;
  const std::int32_t* y;
  int patience;  // stop after this many evaluations without improvement
};

class EarlyStop {
 public:
  explicit EarlyStop(const HeldOut* data) : data_(data) {}

  // Evaluates the accuracy of p on the held-out tokens; calls keep() if it is the best so far. Returns true to stop.
  template <class F>
  bool look(const Potentials& p, F&& keep) {
    if (!data_) return false;
    scores.push_back(accuracy(p));
    if (scores.back() > best_) {
      best_ = scores.back();
      waited_ = 0;
      keep();
    } else {
      ++waited_;
    }
    stopped = waited_ >= data_->patience;
    return stopped;
  }

  explicit operator bool() const { return data_ != nullptr; }

  std::vector<double> scores;
  bool stopped = false;

 private:
  double accuracy(const Potentials& p) const;

  const HeldOut* data_;
  double best_ = -1;
  int waited_ = 0;
};

}  // namespace hinge
