// One function per binding file, called by module.cpp.
#pragma once
#include <nanobind/nanobind.h>

namespace hinge {
void bind_core(nanobind::module_& m);
void bind_losses(nanobind::module_& m);
void bind_structured(nanobind::module_& m);
void bind_multiclass(nanobind::module_& m);
void bind_trees(nanobind::module_& m);
void bind_tree_blocks(nanobind::module_& m);
void bind_linear(nanobind::module_& m);
void bind_networks(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);
void bind_isotonic(nanobind::module_& m);
void bind_generative(nanobind::module_& m);
void bind_neighbors(nanobind::module_& m);
}  // namespace hinge
