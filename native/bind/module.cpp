#include <nanobind/nanobind.h>

#include "bind/modules.hpp"

NB_MODULE(_core, m) {
#ifdef HINGE_LEVEL  // core/hot.hpp
  if (!__builtin_cpu_supports("x86-64-v" HINGE_LEVEL))
    throw nanobind::import_error("this build of hinge is for machines of level x86-64-v" HINGE_LEVEL
                                 ", which this one is not; build it here (make clean build)");
#endif
  // nanobind would print a leak report when a process ends while models are alive (a worker that is stopped, for
  // example). Nothing of consequence leaks, so it is switched off; tests/kit checks memory instead.
  nanobind::set_leak_warnings(false);
  m.doc() = "The compiled core of hinge. Private: use hinge, whose _native module is its only importer.";
  hinge::bind_core(m);
  hinge::bind_losses(m);
  hinge::bind_structured(m);
  hinge::bind_multiclass(m);
  hinge::bind_trees(m);
  hinge::bind_tree_blocks(m);
  hinge::bind_linear(m);
  hinge::bind_networks(m);
  hinge::bind_kernels(m);
  hinge::bind_isotonic(m);
  hinge::bind_generative(m);
  hinge::bind_neighbors(m);
}
