// Kernels: values k(a, b) for blocks of pairs, from one matrix product and a function of each entry.
//
// A kernel is a short program in postfix order (written by hinge.problem.kernels): leaves push a block of values,
// operators combine the topmost blocks. Leaves that are functions of <a, b>, |a|^2 and |b|^2 share one product; leaves
// that need single coordinates (Laplacian, chi-squared) loop over them.
//
// The blocks depend on the shape of the data alone, so the values do not depend on the number of threads.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/hot.hpp"

namespace hinge {

enum class KernelOp : int {
  linear,      // <a, b>
  polynomial,  // (p0 <a, b> + p1)^p2
  rbf,         // exp(-p0 |a - b|^2)
  sigmoid,     // tanh(p0 <a, b> + p1)
  cosine,      // <a, b> / (|a| |b|), zero if either is zero
  matern,      // p0 = 2 nu in {1, 3, 5}, p1 = 1 / length scale
  rational,    // (1 + p0 |a - b|^2)^-p1
  laplacian,   // exp(-p0 |a - b|_1)
  chi2,        // exp(-p0 sum (a_j - b_j)^2 / (a_j + b_j))
  constant,    // p0
  sum,
  product,
  scale,     // p0 times the topmost
  power,     // the topmost to the power p0, a positive integer
  distance,  // p0 |a - b|^2: a factor in derivatives, not a kernel
};

struct Instruction {
  KernelOp op;
  double p[3];
};

using KernelProgram = std::vector<Instruction>;

// n points of dimension d, owned by the caller: row-major, or CSR with 32-bit indices.
template <class T>
struct Points {
  index_t n = 0, d = 0;
  const T* dense = nullptr;
  const T* value = nullptr;
  const std::int32_t* column = nullptr;
  const std::int32_t* start = nullptr;
  std::vector<T> square;  // |x_i|^2

  bool sparse() const { return start != nullptr; }  // `value` is null if no entry is stored
  void measure();                                   // fills `square`
};

// A subset of the points, in the given order.
template <class T>
struct Gathered {
  Points<T> points;
  std::vector<T> dense, value;
  std::vector<std::int32_t> column, start;
  Gathered(const Points<T>& from, const index_t* which, index_t m);
  Gathered(const Gathered&) = delete;
  Gathered& operator=(const Gathered&) = delete;
};

// out[i][j] = k(a_i, b_j) for all i, j; out[i] points to row i.
template <class T>
void kernel_rows(const KernelProgram& program, const Points<T>& a, const Points<T>& b, T* const* out);

// Calls visit(i, j0, j1, values) with values[j - j0] = k(a_i, b_j), tile by tile, for rows i in [begin, end) and all j.
// Runs on the calling thread: it is meant for the body of a parallel loop over rows.
template <class T>
using TileVisitor = std::function<void(index_t i, index_t j0, index_t j1, const T* values)>;
template <class T>
void kernel_tiles(const KernelProgram& program, const Points<T>& a, const Points<T>& b, index_t begin, index_t end,
                  const TileVisitor<T>& visit);

// Z = K(a, b) C with C of shape b.n x k, row-major; at most a few blocks of K are in memory at a time.
template <class T>
void kernel_scores(const KernelProgram& program, const Points<T>& a, const Points<T>& b, const double* coef, index_t k,
                   double* z);

// z = K(a, a) c with every value made once for both sides of the diagonal.
template <class T>
void kernel_self_scores(const KernelProgram& program, const Points<T>& a, const double* coef, double* z);

// G = K(a, b)' diag(h) K(a, b) (b.n x b.n) and r = K(a, b)' U with U of shape a.n x k, in one pass over a.
// h, G or U may be null.
template <class T>
void kernel_normal(const KernelProgram& program, const Points<T>& a, const Points<T>& b, const double* h, double* G,
                   const double* U, index_t k, double* r);

// r = K'(h * (K v + shift)) and the sum of h * (K v + shift), in one pass: the product that conjugate gradients need.
// K = K(a, b) is computed block by block, or is a given n x m matrix, row-major.
template <class T>
double kernel_quadratic(const KernelProgram& program, const Points<T>& a, const Points<T>& b, const double* h,
                        const double* v, double shift, double* r);
template <class T>
double block_quadratic(const T* K, index_t n, index_t m, const double* h, const double* v, double shift, double* r);

}  // namespace hinge
