// Exact inference on second-order chains, with scores of label triples.
//
//   score(x, y) = sum_t s_t(y_t) + sum_{t>0} T_t[y_{t-1}, y_t] + sum_{t>1} R[y_{t-2}, y_{t-1}, y_t]
//
// The recursions run on label pairs: alpha_t(i, j) belongs to y_{t-1} = i, y_t = j, and a step sums over the previous
// label, labels^3 terms per token. Tables of triples are stored by the middle label (Potentials::triple), so that a
// step is a vector-matrix product for each i. Sums use scaled probabilities, with a separate scale for each direction;
// a sequence with a normaliser below 1e-150 is recomputed with logarithms. The normalisers include that of alpha_t
// times beta_t, so underflow loses a fraction of at most 1e-308 / 1e-150 of Z.
#pragma once
#include "sequence/label_tree.hpp"

namespace hinge {

// As the functions of label_tree.hpp, for a chain (chain.parent is null) and p.second(). If `triples` is given, adds to
// it the expected label triples times `weight`, arranged as p.triple.
double trigram_posterior(const Potentials& p, const Tree& chain, double* scores, double weight, double* pairs,
                         double* each, double* triples, ChainScratch& scratch);
double trigram_log_partition(const Potentials& p, const Tree& chain, const double* scores, ChainScratch& scratch);
double trigram_best(const Potentials& p, const Tree& chain, const double* scores, std::int32_t* best,
                    ChainScratch& scratch);
index_t trigram_top(const Potentials& p, const Tree& chain, const double* scores, index_t count, std::int32_t* best,
                    double* value);

}  // namespace hinge
