#include "problem/kernel_row.hpp"

#include <algorithm>
#include <cmath>

#include "core/math.hpp"

namespace hinge {
namespace {

template <class T>
HINGE_INLINE T squared_distance(T aa, T bb, T dot) {
  const T q = aa + bb - T(2) * dot;
  return q > T(0) ? q : T(0);
}

template <class T>
HINGE_HOT void rbf_row(const KernelRow<T>& row, T gamma, T* __restrict out) {
  const T* __restrict dot = row.dot, * __restrict bb = row.bb;
  const T aa = row.aa;
  for (index_t j = 0; j < row.n; ++j) out[j] = math::exp(-gamma * squared_distance(aa, bb[j], dot[j]));
}

template <class T>
HINGE_HOT void distance_row(const KernelRow<T>& row, T factor, T* __restrict out) {
  for (index_t j = 0; j < row.n; ++j) out[j] = factor * squared_distance(row.aa, row.bb[j], row.dot[j]);
}

template <class T>
HINGE_HOT void polynomial_row(const KernelRow<T>& row, T gamma, T shift, int degree, T* __restrict out) {
  const T* __restrict dot = row.dot;
  for (index_t j = 0; j < row.n; ++j) {
    const T base = gamma * dot[j] + shift;
    T value = base;
    for (int k = 1; k < degree; ++k) value *= base;
    out[j] = value;
  }
}

template <class T>
HINGE_HOT void sigmoid_row(const KernelRow<T>& row, T gamma, T shift, T* __restrict out) {
  for (index_t j = 0; j < row.n; ++j) {
    const T t = gamma * row.dot[j] + shift;
    const T e = math::exp(T(-2) * std::fabs(t));
    const T v = (T(1) - e) / (T(1) + e);
    out[j] = t < 0 ? -v : v;
  }
}

template <class T>
HINGE_HOT void cosine_row(const KernelRow<T>& row, T* __restrict out) {
  for (index_t j = 0; j < row.n; ++j) {
    const T size = std::sqrt(row.aa) * std::sqrt(row.bb[j]);
    out[j] = size > T(0) ? row.dot[j] / size : T(0);
  }
}

template <class T, int TwiceNu>
HINGE_HOT void matern_row(const KernelRow<T>& row, T inverse_length, T* __restrict out) {
  for (index_t j = 0; j < row.n; ++j) {
    const T r = std::sqrt(squared_distance(row.aa, row.bb[j], row.dot[j])) * inverse_length;
    const T t = r * std::sqrt(static_cast<T>(TwiceNu));
    const T e = math::exp(-t);
    if constexpr (TwiceNu == 1) out[j] = e;
    if constexpr (TwiceNu == 3) out[j] = (T(1) + t) * e;
    if constexpr (TwiceNu == 5) out[j] = (T(1) + t + t * t / T(3)) * e;
  }
}

template <class T>
HINGE_HOT void rational_row(const KernelRow<T>& row, T factor, T power, T* __restrict out) {
  for (index_t j = 0; j < row.n; ++j)
    out[j] = std::pow(T(1) + factor * squared_distance(row.aa, row.bb[j], row.dot[j]), -power);
}

template <class T>
HINGE_HOT void laplacian_row(const KernelRow<T>& row, T gamma, T* __restrict out) {
  std::fill(out, out + row.n, T(0));
  for (index_t k = 0; k < row.d; ++k) {
    const T a = row.a[k];
    const T* __restrict b = row.bt + k * row.ldbt;
    for (index_t j = 0; j < row.n; ++j) out[j] += std::fabs(a - b[j]);
  }
  for (index_t j = 0; j < row.n; ++j) out[j] = math::exp(-gamma * out[j]);
}

template <class T>
HINGE_HOT void chi2_row(const KernelRow<T>& row, T gamma, T* __restrict out) {
  std::fill(out, out + row.n, T(0));
  for (index_t k = 0; k < row.d; ++k) {
    const T a = row.a[k];
    const T* __restrict b = row.bt + k * row.ldbt;
    for (index_t j = 0; j < row.n; ++j) {
      const T difference = a - b[j], total = a + b[j];
      out[j] += total > T(0) ? difference * difference / total : T(0);
    }
  }
  for (index_t j = 0; j < row.n; ++j) out[j] = math::exp(-gamma * out[j]);
}

template <class T>
HINGE_HOT void combine_row(KernelOp op, T factor, const T* __restrict top, T* __restrict below, index_t n) {
  if (op == KernelOp::sum)
    for (index_t j = 0; j < n; ++j) below[j] += top[j];
  else if (op == KernelOp::product)
    for (index_t j = 0; j < n; ++j) below[j] *= top[j];
  else
    for (index_t j = 0; j < n; ++j) below[j] *= factor;
}

template <class T>
HINGE_HOT void power_row(int degree, T* __restrict top, index_t n) {
  for (index_t j = 0; j < n; ++j) {
    T value = top[j];
    for (int k = 1; k < degree; ++k) value *= top[j];
    top[j] = value;
  }
}

}  // namespace

bool looks_at_coordinates(const KernelProgram& program) {
  return std::any_of(program.begin(), program.end(),
                     [](const Instruction& i) { return i.op == KernelOp::laplacian || i.op == KernelOp::chi2; });
}

index_t stack_depth(const KernelProgram& program) {
  index_t depth = 0, most = 0;
  for (const auto& i : program) {
    if (i.op == KernelOp::sum || i.op == KernelOp::product)
      --depth;
    else if (i.op != KernelOp::scale && i.op != KernelOp::power)
      ++depth;
    most = std::max(most, depth);
  }
  return most;
}

template <class T>
void run_row(const KernelProgram& program, const KernelRow<T>& row, T* out, T* stack) {
  index_t depth = 0;
  const auto level = [&](index_t k) { return k == 0 ? out : stack + (k - 1) * kTileCols; };
  for (const auto& i : program) {
    const T p0 = static_cast<T>(i.p[0]), p1 = static_cast<T>(i.p[1]);
    switch (i.op) {
      case KernelOp::sum:
      case KernelOp::product:
        --depth;
        combine_row<T>(i.op, T(0), level(depth), level(depth - 1), row.n);
        continue;
      case KernelOp::scale:
        combine_row<T>(i.op, p0, nullptr, level(depth - 1), row.n);
        continue;
      case KernelOp::power:
        power_row<T>(static_cast<int>(i.p[0]), level(depth - 1), row.n);
        continue;
      default:
        break;
    }
    T* to = level(depth++);
    switch (i.op) {
      case KernelOp::linear:
        std::copy(row.dot, row.dot + row.n, to);
        break;
      case KernelOp::polynomial:
        polynomial_row<T>(row, p0, p1, static_cast<int>(i.p[2]), to);
        break;
      case KernelOp::rbf:
        rbf_row<T>(row, p0, to);
        break;
      case KernelOp::sigmoid:
        sigmoid_row<T>(row, p0, p1, to);
        break;
      case KernelOp::cosine:
        cosine_row<T>(row, to);
        break;
      case KernelOp::matern:
        if (i.p[0] == 1)
          matern_row<T, 1>(row, p1, to);
        else if (i.p[0] == 3)
          matern_row<T, 3>(row, p1, to);
        else
          matern_row<T, 5>(row, p1, to);
        break;
      case KernelOp::rational:
        rational_row<T>(row, p0, p1, to);
        break;
      case KernelOp::laplacian:
        laplacian_row<T>(row, p0, to);
        break;
      case KernelOp::chi2:
        chi2_row<T>(row, p0, to);
        break;
      case KernelOp::constant:
        std::fill(to, to + row.n, p0);
        break;
      case KernelOp::distance:
        distance_row<T>(row, p0, to);
        break;
      default:
        break;
    }
  }
}

template void run_row<float>(const KernelProgram&, const KernelRow<float>&, float*, float*);
template void run_row<double>(const KernelProgram&, const KernelRow<double>&, double*, double*);

}  // namespace hinge
