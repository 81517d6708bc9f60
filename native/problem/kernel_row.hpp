// One row of kernel values: the program of a kernel, run on inner products and norms.
#pragma once
#include "problem/kernels.hpp"

namespace hinge {

// The values of one tile's row that a level of the stack holds at most.
constexpr index_t kTileCols = 512;

// One row of a tile: n values of <a, b_j> with |a|^2 and |b_j|^2, and the coordinates for leaves that need them.
template <class T>
struct KernelRow {
  index_t n;
  const T* dot;
  T aa;
  const T* bb;
  const T* a;   // d coordinates of a
  const T* bt;  // d x n: the coordinates of the b_j, one row of length `ldbt` per coordinate
  index_t d, ldbt;
};

// True if a leaf of the program wants coordinates, beside inner products and norms.
bool looks_at_coordinates(const KernelProgram& program);

// How many blocks of values the program holds at once.
index_t stack_depth(const KernelProgram& program);

// Runs the program on one row; `out` is the bottom of the stack, the rest of it is in `stack`.
template <class T>
void run_row(const KernelProgram& program, const KernelRow<T>& row, T* out, T* stack);

}  // namespace hinge
