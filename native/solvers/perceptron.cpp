#include "solvers/perceptron.hpp"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "core/random.hpp"
#include "core/shuffled.hpp"

namespace hinge {
namespace {

template <class View>
HINGE_HOT void visit_some(const View& rows, const index_t* at, const double* y, const double* weight,
                          const index_t* order, index_t n, bool intercept, double rate, PerceptronState& state,
                          Mistakes& out) {
  for (index_t k = 0; k < n; ++k) {
    const index_t i = order[k], row = at[k];
    look_ahead(rows, at, k, n);
    look_ahead(y, weight, order, k, n);
    const double s = weight ? weight[i] : 1.0, age = state.age;
    state.age += s;
    if (y[i] * (rows.dot(row, state.w) + state.b) > 0) continue;
    const double step = rate * s * y[i], late = step * age;
    rows.axpy_twice(row, step, state.w, late, state.late);
    if (intercept) {
      state.b += step;
      state.late_b += late;
    }
    out.row.push_back(i);
    out.age.push_back(age);
  }
}

HINGE_INLINE void add_scores(const double* __restrict w, double x, index_t k, double* __restrict z) {
  for (index_t c = 0; c < k; ++c) z[c] += x * w[c];
}

template <class View>
HINGE_HOT std::int64_t visit_classes(const View& rows, const index_t* row_at, const std::int32_t* y,
                                     const double* weight, const index_t* order, index_t n, index_t d, index_t k,
                                     bool intercept, double* w, double* late, double& age, double* __restrict z) {
  std::int64_t mistakes = 0;
  for (index_t at = 0; at < n; ++at) {
    const index_t i = order[at], row = row_at[at];
    look_ahead(rows, row_at, at, n);
    look_ahead(y, weight, order, at, n);
    std::fill(z, z + k, 0.0);
    rows.each(row, [&](index_t j, double x) { add_scores(w + j * k, x, k, z); });
    if (intercept) add_scores(w + d * k, 1.0, k, z);
    const index_t guess = std::max_element(z, z + k) - z, truth = y[i];
    const double s = weight ? weight[i] : 1.0, before = age;
    age += s;
    if (guess == truth) continue;
    ++mistakes;
    const auto move = [&](index_t j, double x) {
      const double step = s * x;
      w[j * k + truth] += step;
      w[j * k + guess] -= step;
      late[j * k + truth] += before * step;
      late[j * k + guess] -= before * step;
    };
    rows.each(row, move);
    if (intercept) move(d, 1.0);
  }
  return mistakes;
}

template <class F>
void with_rows(const Design& X, const F& run) {
  std::visit(
      [&](const auto& rows) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(rows)>, std::monostate>) run(rows);
      },
      X.row_view());
}

}  // namespace

std::vector<index_t> Visits::order(index_t n) const {
  std::vector<index_t> rows(n);
  std::iota(rows.begin(), rows.end(), index_t{0});
  if (shuffle) Random(seed, static_cast<std::uint64_t>(epoch) + 1).shuffle(rows.data(), n);
  return rows;
}

Mistakes perceptron_epoch(const Design& X, const double* y, const double* weight, bool intercept, double rate,
                          const Visits& visits, PerceptronState& state, Monitor& monitor) {
  const std::vector<index_t> order = visits.order(X.rows());
  Mistakes out;
  with_rows(X, [&](const auto& rows) {
    const auto body = [&]<class View>(index_t, const View& view, const index_t* at, index_t begin, index_t end) {
      const auto visit = may_throw(&visit_some<View>);
      visit(view, at, y, weight, order.data() + begin, end - begin, intercept, rate, state, out);
    };
    NothingBeside nothing;
    visit_rows(rows, order, 1, false, monitor, body, nothing);
  });
  return out;
}

std::int64_t multiclass_perceptron_epoch(const Design& X, const std::int32_t* y, const double* weight, index_t k,
                                         bool intercept, const Visits& visits, double* w, double* late, double& age,
                                         Monitor& monitor) {
  const std::vector<index_t> order = visits.order(X.rows());
  std::vector<double> scores(k);
  std::int64_t mistakes = 0;
  with_rows(X, [&](const auto& rows) {
    const auto body = [&](index_t, const auto& view, const index_t* at, index_t begin, index_t end) {
      mistakes += visit_classes(view, at, y, weight, order.data() + begin, end - begin, X.cols(), k, intercept, w, late,
                                age, scores.data());
    };
    NothingBeside nothing;
    visit_rows(rows, order, 1, false, monitor, body, nothing);
  });
  return mistakes;
}

}  // namespace hinge
