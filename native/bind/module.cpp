#include <nanobind/nanobind.h>

#include "bind/modules.hpp"

NB_MODULE(_core, m) {
  m.doc() = "The compiled core of hinge. Private: use hinge, whose _native module is its only importer.";
  hinge::bind_core(m);
  hinge::bind_losses(m);
  hinge::bind_structured(m);
  hinge::bind_multiclass(m);
  hinge::bind_trees(m);
  hinge::bind_linear(m);
  hinge::bind_networks(m);
  hinge::bind_kernels(m);
  hinge::bind_isotonic(m);
  hinge::bind_generative(m);
}
