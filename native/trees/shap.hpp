// Shapley values of tree ensembles (TreeSHAP, Lundberg et al. 2020, Algorithm 2).
//
// phi_j is feature j's contribution to f(x) - E f, where unknown features follow the training rows down the tree.
// Polynomial time: O(leaves * depth^2) per row and tree.
#pragma once
#include "trees/predict.hpp"

namespace hinge::trees {

// weight: of every node. out: rows x features x outputs, added to. Only for additive ensembles.
template <class T>
void add_shap(const Ensemble& e, const std::vector<double>& weight, const Table<T>& x, double* out);

}  // namespace hinge::trees
