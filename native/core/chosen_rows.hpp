// A subset of the rows of a design, as a view: only the list of rows is stored.
#pragma once
#include <memory>
#include <vector>

#include "core/design.hpp"

namespace hinge {

// The rows `which` of X; null if X is not stored by rows.
std::unique_ptr<Products> chosen_rows(const Design& X, std::vector<index_t> which);

}  // namespace hinge
