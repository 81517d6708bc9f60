// Checks of the arrays of a chain or tree model, made before anything reads them. Each function throws
// std::invalid_argument with a message for the user.
#pragma once
#include "sequence/chain.hpp"

namespace hinge {

// `starts`, `pointers`, `entries`, `values`, `parents`: the lengths of the arrays of x (values, parents: -1 if absent).
void check_tokens(const Tokens& x, index_t starts, index_t pointers, index_t entries, index_t values, index_t parents);
void check_layout(const Layout& layout);
void check_labels(const Tokens& x, const std::int32_t* y, index_t size, index_t labels);

}  // namespace hinge
