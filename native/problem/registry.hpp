// The list of losses, from which the bindings, the virtual wrapper and the contract tests are generated. A new loss is
// a struct in losses.hpp, a Python class and one name in this list.
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
