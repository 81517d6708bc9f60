#include "solvers/decomposition_many.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "core/pool.hpp"
#include "solvers/batch.hpp"

namespace hinge {
namespace {

// Problems per parallel task.
constexpr index_t kTogether = 16;

// Consecutive rows of the kernel matrix.
struct Run {
  index_t begin, size;
};

void find_runs(const index_t* rows, index_t m, std::vector<Run>& runs) {
  runs.clear();
  for (index_t i = 0; i < m; ++i)
    if (!runs.empty() && rows[i] == runs.back().begin + runs.back().size)
      ++runs.back().size;
    else
      runs.push_back({rows[i], 1});
}

HINGE_HOT double dot(const double* __restrict a, const double* __restrict b, index_t n) {
  double sum = 0;
  for (index_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

HINGE_HOT void subtract(double factor, const double* __restrict row, index_t n, double* __restrict e) {
  for (index_t i = 0; i < n; ++i) e[i] -= factor * row[i];
}

// The level of e in a group (the mean over variables strictly inside their bounds, else the middle of the interval that
// optimality allows), and the violation of the optimality condition there.
struct Level {
  double value, violation;
};

Level level(const Batch<double>& batch, index_t m, int group) {
  double high = -kInfinity, low = kInfinity, sum = 0;
  index_t inside = 0;
  for (index_t v = 0; v < m; ++v) {
    if (batch.group(v) != group) continue;
    if (batch.rise[group][v] == 0) high = std::max(high, batch.e[v]);
    if (batch.fall[group][v] == 0) low = std::min(low, batch.e[v]);
    if (batch.a[v] > 0 && batch.a[v] < batch.upper[v]) sum += batch.e[v], ++inside;
  }
  const double violation = high - low;
  if (inside) return {sum / static_cast<double>(inside), violation};
  if (high == -kInfinity) return {low == kInfinity ? 0.0 : low, violation};
  return {low == kInfinity ? high : 0.5 * (high + low), violation};
}

void solve(const ManyDuals& p, index_t k, double tol, index_t max_steps, const ManySolutions& out, Batch<double>& batch,
           std::vector<Run>& runs) {
  const index_t m = p.length[k], line = k * p.width;
  const index_t* rows = p.rows + line;
  find_runs(rows, m, runs);
  batch.resize(m, p.groups);
  for (index_t r = 0; r < m; ++r) {
    double* to = batch.K.data() + r * batch.size;
    for (const Run& run : runs) to = std::copy_n(p.values + rows[r] * p.n + run.begin, run.size, to);
    batch.diagonal[r] = batch.K[r * batch.size + r];
    batch.e[r] = p.target[line + r];
    batch.a[r] = out.alpha[line + r];
    batch.sign[r] = p.sign[line + r];
    batch.upper[r] = p.upper[line + r];
    batch.mark(r);
  }
  for (index_t r = 0; r < m; ++r)
    if (batch.a[r] != 0)
      subtract(batch.sign[r] * batch.a[r], batch.K.data() + r * batch.size, batch.size, batch.e.data());
  out.steps[k] = solve_batch<double>(batch, 0.0, tol, max_steps).steps;
  std::copy_n(batch.a.begin(), m, out.alpha + line);
  const Level first = level(batch, m, 0), second = p.groups == 2 ? level(batch, m, 1) : Level{0, -kInfinity};
  out.bias[k] = p.groups == 2 ? 0.5 * (second.value + first.value) : first.value;
  out.rho[k] = p.groups == 2 ? 0.5 * (second.value - first.value) : 0.0;
  out.violation[k] = std::max(first.violation, second.violation);
}

template <class F>
void for_problems(index_t count, const F& f) {
  const index_t parts = (count + kTogether - 1) / kTogether;
  parallel_for(parts, [&](index_t part) { f(part * kTogether, std::min(count, (part + 1) * kTogether)); });
}

}  // namespace

void decompose_many(const ManyDuals& problems, const double* tol, index_t max_steps, const ManySolutions& out) {
  for_problems(problems.count, [&](index_t begin, index_t end) {
    Batch<double> batch;
    std::vector<Run> runs;
    for (index_t k = begin; k < end; ++k) solve(problems, k, tol[k], max_steps, out, batch, runs);
  });
}

void scores_of_many(const ManyDuals& p, const double* coefficients, double* scores) {
  for_problems(p.count, [&](index_t begin, index_t end) {
    std::vector<Run> runs;
    for (index_t k = begin; k < end; ++k) {
      const index_t m = p.length[k], line = k * p.width;
      find_runs(p.rows + line, m, runs);
      for (index_t r = 0; r < m; ++r) {
        const double *row = p.values + p.rows[line + r] * p.n, *beta = coefficients + line;
        double sum = 0;
        for (const Run& run : runs) {
          sum += dot(row + run.begin, beta, run.size);
          beta += run.size;
        }
        scores[line + r] = sum;
      }
    }
  });
}

}  // namespace hinge
