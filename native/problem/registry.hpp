// The list of losses. Bindings, the virtual wrapper and the contract tests are generated from it: adding a
// loss is its struct in losses.hpp, its Python class, and one word here.
#pragma once
#include "problem/losses.hpp"

namespace hinge {

template <class... Ls>
struct List {};

using Losses =
    List<losses::Squared, losses::Absolute, losses::RelativeError, losses::Huber, losses::EpsilonInsensitive,
         losses::SquaredEpsilonInsensitive, losses::Quantile, losses::LogCosh, losses::Hinge, losses::SquaredHinge,
         losses::ModifiedHuber, losses::PerceptronLoss, losses::Logistic, losses::Exponential, losses::SquaredMargin,
         losses::Bernoulli, losses::Poisson, losses::Gamma, losses::Tweedie, losses::NegativeBinomial>;

}  // namespace hinge
