// Exact inference on chains of the second order: scores of label triples.
//
//   score(x, y) = sum_t s_t(y_t) + sum_{t>0} T_t[y_{t-1}, y_t] + sum_{t>1} R[y_{t-2}, y_{t-1}, y_t]
//
// The recursions of a chain run on label pairs: alpha_t(i, j) belongs to y_{t-1} = i, y_t = j, and a step sums over the
// label before, labels^3 terms a token. Tables of triples are cut by the label in the middle (Potentials::triple), so
// that a step is, for each i, a vector times a matrix. Sums run on scaled probabilities, each direction with its own
// scale; a sequence where a normaliser falls under 1e-150 is done again with logarithms. The normaliser of alpha_t
// times beta_t is among them, so that what underflow hides is a share below 1e-308 / 1e-150 of Z.
#pragma once
#include "sequence/label_tree.hpp"

namespace hinge {

// As the functions of label_tree.hpp, for a chain (chain.parent is null) and p.second(). `triples`, if given, gets the
// expected label triples times `weight` added, arranged as p.triple.
double trigram_posterior(const Potentials& p, const Tree& chain, double* scores, double weight, double* pairs,
                         double* each, double* triples, ChainScratch& scratch);
double trigram_log_partition(const Potentials& p, const Tree& chain, const double* scores, ChainScratch& scratch);
double trigram_best(const Potentials& p, const Tree& chain, const double* scores, std::int32_t* best,
                    ChainScratch& scratch);
index_t trigram_top(const Potentials& p, const Tree& chain, const double* scores, index_t count, std::int32_t* best,
                    double* value);

}  // namespace hinge
