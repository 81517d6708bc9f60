// The subproblem of one batch: a few hundred variables with all their kernel values in memory, solved pair by pair.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/hot.hpp"

namespace hinge {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The curvature used for a pair of points that coincide, whose true curvature is zero.
constexpr double kTinyCurvature = 1e-12;

// Arrays of `size` entries (a multiple of 8); entries beyond the batch can neither rise nor fall.
template <class T>
struct Batch {
  index_t size = 0;
  std::vector<T> K;         // size x size
  std::vector<T> diagonal;  // K(v, v)
  std::vector<double> e;    // t - F
  std::vector<double> a, sign, upper;
  // Pairs are made within a group: one group for all variables, or one for each sign.
  int groups = 1;
  std::array<std::vector<double>, 2> rise;  // 0 if s a may grow, -inf if not (or in the other group)
  std::array<std::vector<double>, 2> fall;  // 0 if s a may shrink, +inf if not

  int group(index_t v) const { return groups == 2 && sign[v] < 0; }

  void resize(index_t used, int number_of_groups) {
    size = (used + 7) / 8 * 8;
    groups = number_of_groups;
    K.resize(size * size);
    for (index_t r = 0; r < size; ++r)
      std::fill_n(K.begin() + r * size + (r < used ? used : 0), size - (r < used ? used : 0), T(0));
    diagonal.assign(size, T(0));
    for (auto* v : {&e, &a, &sign, &upper}) v->assign(size, 0.0);
    for (int g = 0; g < groups; ++g) {
      rise[g].assign(size, -kInfinity);
      fall[g].assign(size, kInfinity);
    }
  }

  void mark(index_t v) {
    const bool positive = sign[v] > 0, above = a[v] > 0, below = a[v] < upper[v];
    rise[group(v)][v] = (positive ? below : above) ? 0.0 : -kInfinity;
    fall[group(v)][v] = (positive ? above : below) ? 0.0 : kInfinity;
  }
};

struct Extremes {
  double high, low;  // max e over the variables that may rise, min e over those that may fall
  index_t at;        // index of the max
};

using Lanes [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = double;
using Counts [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = long long;
using Floats [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
using Ints [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = int;

template <class T>
struct Wide;
template <>
struct Wide<double> {
  using Values = Lanes;
  using Index = Counts;
};
template <>
struct Wide<float> {
  using Values = Floats;
  using Index = Ints;
};

// e -= step (K_i - K_j); returns the extremes of the new e in a group.
template <class T>
HINGE_HOT Extremes move(const T* ki, const T* kj, double step, Batch<T>& batch, int group) {
  using V = typename Wide<T>::Values;
  Lanes high = Lanes{} - kInfinity, low = Lanes{} + kInfinity;
  Counts at = {}, now = {0, 1, 2, 3, 4, 5, 6, 7};
  double* e = batch.e.data();
  const double *rise = batch.rise[group].data(), *fall = batch.fall[group].data();
  for (index_t v = 0; v < batch.size; v += 8) {
    const V difference = *reinterpret_cast<const V*>(ki + v) - *reinterpret_cast<const V*>(kj + v);
    const Lanes x = *reinterpret_cast<const Lanes*>(e + v) - step * __builtin_convertvector(difference, Lanes);
    *reinterpret_cast<Lanes*>(e + v) = x;
    const Lanes up = x + *reinterpret_cast<const Lanes*>(rise + v);
    const Lanes down = x + *reinterpret_cast<const Lanes*>(fall + v);
    const Counts better = up > high;
    high = better ? up : high;
    at = better ? now : at;
    low = down < low ? down : low;
    now += 8;
  }
  Extremes out{-kInfinity, kInfinity, 0};
  for (int k = 0; k < 8; ++k) {
    if (high[k] > out.high || (high[k] == out.high && at[k] < out.at)) out.high = high[k], out.at = at[k];
    if (low[k] < out.low) out.low = low[k];
  }
  return out;
}

// The partner j of i with the largest predicted decrease, (e_i - e_j)^2 / |phi_i - phi_j|^2; -1 if there is none.
template <class T>
HINGE_HOT index_t partner(const Batch<T>& batch, index_t i) {
  using V = typename Wide<T>::Values;
  using N = typename Wide<T>::Index;
  const T* ki = batch.K.data() + i * batch.size;
  const double* fall = batch.fall[batch.group(i)].data();
  const double ei = batch.e[i];
  const T kii = batch.diagonal[i], tiny = static_cast<T>(kTinyCurvature);
  V best = {};
  N at = {}, now = {0, 1, 2, 3, 4, 5, 6, 7};
  for (index_t v = 0; v < batch.size; v += 8) {
    const Lanes gap =
        ei - (*reinterpret_cast<const Lanes*>(batch.e.data() + v) + *reinterpret_cast<const Lanes*>(fall + v));
    const V g = __builtin_convertvector(gap, V);
    V curve = kii + *reinterpret_cast<const V*>(batch.diagonal.data() + v) - T(2) * *reinterpret_cast<const V*>(ki + v);
    curve = curve > tiny ? curve : V{} + tiny;
    const V positive = g > T(0) ? g : V{};
    const V gain = positive * positive / curve;
    const N better = gain > best;
    best = better ? gain : best;
    at = better ? now : at;
    now += 8;
  }
  T most = T(0);
  index_t j = -1;
  for (int k = 0; k < 8; ++k)
    if (best[k] > most || (best[k] == most && j >= 0 && at[k] < j)) most = best[k], j = at[k];
  return j;
}

// e -= step (K_i - K_j); returns the extremes of the group with the larger violation.
template <class T>
Extremes move_all(const T* ki, const T* kj, double step, Batch<T>& batch) {
  const Extremes first = move<T>(ki, kj, step, batch, 0);
  if (batch.groups == 1) return first;
  const Extremes second = move<T>(ki, kj, 0.0, batch, 1);
  return second.high - second.low > first.high - first.low ? second : first;
}

struct BatchProgress {
  index_t steps = 0;
  double gain = 0;  // decrease of the objective
};

// Takes pair steps until the batch is optimal to `tol`.
template <class T>
BatchProgress solve_batch(Batch<T>& batch, double relative, double tol, index_t most) {
  const T* K = batch.K.data();
  Extremes x = move_all<T>(K, K, 0.0, batch);
  const double goal = std::max(tol, relative * (x.high - x.low));
  BatchProgress done;
  for (; done.steps < most && x.high - x.low > goal; ++done.steps) {
    const index_t i = x.at, j = partner<T>(batch, i);
    if (j < 0) break;
    const T *ki = K + i * batch.size, *kj = K + j * batch.size;
    const double curve =
        std::max(static_cast<double>(batch.diagonal[i]) + batch.diagonal[j] - 2.0 * ki[j], kTinyCurvature);
    const double room_i = batch.sign[i] > 0 ? batch.upper[i] - batch.a[i] : batch.a[i];
    const double room_j = batch.sign[j] > 0 ? batch.a[j] : batch.upper[j] - batch.a[j];
    const double gradient = batch.e[i] - batch.e[j];
    double step = gradient / curve;
    const bool end_i = step >= room_i, end_j = std::min(step, room_i) >= room_j;
    step = std::min({step, room_i, room_j});
    done.gain += step * (gradient - 0.5 * step * curve);
    batch.a[i] += batch.sign[i] * step;
    batch.a[j] -= batch.sign[j] * step;
    if (end_i && room_i <= room_j) batch.a[i] = batch.sign[i] > 0 ? batch.upper[i] : 0.0;
    if (end_j) batch.a[j] = batch.sign[j] > 0 ? 0.0 : batch.upper[j];
    batch.mark(i);
    batch.mark(j);
    x = move_all<T>(ki, kj, step, batch);
  }
  return done;
}

}  // namespace hinge
