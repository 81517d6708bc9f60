// Names of attributes to columns, and tokens made of names to sparse rows.
#pragma once
#include "bind/arrays.hpp"

namespace hinge {

void bind_attributes(nb::module_& m);

}  // namespace hinge
