// One pass over the data: the loss of a conditional random field and its gradient, in one precision.
//
// Scores, recursions and sums over a part of the data are in that precision; sums over parts and the loss are double.
// Trees, observed label pairs and label triples are always computed in double.
#pragma once
#include "sequence/chain_plan.hpp"
#include "sequence/chain_recursions.hpp"
#include "sequence/sequence.hpp"

namespace hinge {

struct LabelledChains {
  Tokens x;
  const std::int32_t* y;  // a label per token
  const double* weight;   // a weight per sequence
};

template <class Real>
class ChainPass {
 public:
  using Numbers = std::vector<Real, AlignedAllocator<Real>>;

  // All arguments must outlive this object.
  ChainPass(const LabelledChains& data, const Layout& layout, const ChainPlan& plan);

  // Returns the loss; g: its gradient. p: label pairs at w, and all other tables too if the structures are not plain
  // chains. Adds the expected label pairs to `pairs` (labels x width), those of single attributes to `cross`, and the
  // expected label triples to `triples` (arranged as p.triple; null if there are none).
  double loss(const double* w, const Potentials& p, double* g, double* pairs, double* cross, double* triples);

 private:
  template <int V, class R>
  friend void token_scores(const ChainPass<R>&, index_t, index_t, R*);
  template <class R>
  friend void chain_rows(ChainPass<R>&, const Potentials&, index_t, index_t);
  template <int V, class R>
  friend void chain_sums(ChainPass<R>&, index_t, index_t);
  struct Part {
    Numbers dense, thin;  // the gradient
    Table pairs, triples;
    std::vector<double> cross;
    double value = 0;
    Numbers rows, e, alpha, gamma, outer;  // work space
    ChainScratch scratch;
    Table scores;
  };

  void load(const double* w, const Potentials& p);
  void scores(index_t begin, index_t length, Real* rows) const;
  void general_rows(const Potentials& p, Part& part, index_t block);
  void sums(index_t part, index_t block);
  void gather(double* g, double* pairs, double* cross, double* triples) const;
  const Real* values(const std::vector<Real>& own, const std::vector<double>& planned) const;

  const LabelledChains& data_;
  const Layout& layout_;
  const ChainPlan& plan_;
  bool plain_;
  index_t width_;
  Numbers dense_, thin_;                                    // the weights
  Numbers pad_, first_, last_, power_, power_t_;            // as in Potentials
  std::vector<Real> row_value_, entry_value_, thin_value_;  // in this precision, if it differs from that of the plan
  std::vector<Part> parts_;
};

}  // namespace hinge
