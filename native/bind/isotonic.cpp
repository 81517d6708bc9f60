// Isotonic regression.
#include "solvers/isotonic.hpp"

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"

namespace hinge {

using namespace nb::literals;

void bind_isotonic(nb::module_& m) {
  m.def(
      "isotonic",
      [](Vector y, Vector w) {
        return own(enter([&](Monitor&) { return isotonic(y.data(), w.data(), static_cast<index_t>(y.shape(0))); }));
      },
      "y"_a.noconvert(), "w"_a.noconvert());
}

}  // namespace hinge
