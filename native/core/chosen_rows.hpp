// Some rows of a design, for methods that need the others no longer. Nothing is copied but the list.
#pragma once
#include <memory>
#include <vector>

#include "core/design.hpp"

namespace hinge {

// The rows `which` of X; empty if X is not stored by rows.
std::unique_ptr<Products> chosen_rows(const Design& X, std::vector<index_t> which);

}  // namespace hinge
