#include "solve/perceptron.hpp"

#include <numeric>
#include <type_traits>

#include "core/random.hpp"

namespace hinge {
namespace {

template <class View>
HINGE_HOT void visit_all(const View& rows, const double* y, const std::vector<index_t>& order, bool intercept,
                         double rate, PerceptronState& state, Mistakes& out) {
  const index_t n = static_cast<index_t>(order.size());
  for (index_t k = 0; k < n; ++k, ++state.visits) {
    const index_t i = order[k];
    if (k + 2 < n) rows.prefetch(order[k + 2]);
    if (y[i] * (rows.dot(i, state.w) + state.b) > 0) continue;
    const double step = rate * y[i], weight = step * static_cast<double>(state.visits);
    rows.axpy(i, step, state.w);
    rows.axpy(i, weight, state.late);
    if (intercept) {
      state.b += step;
      state.late_b += weight;
    }
    out.row.push_back(i);
    out.visit.push_back(state.visits);
  }
}

}  // namespace

Mistakes perceptron_epoch(const Design& X, const double* y, bool intercept, double rate, bool shuffle,
                          std::uint64_t seed, index_t epoch, PerceptronState& state, Monitor& monitor) {
  std::vector<index_t> order(X.rows());
  std::iota(order.begin(), order.end(), index_t{0});
  if (shuffle) Random(seed, static_cast<std::uint64_t>(epoch) + 1).shuffle(order.data(), X.rows());
  Mistakes out;
  monitor.poll();
  std::visit(
      [&](const auto& rows) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(rows)>, std::monostate>)
          visit_all(rows, y, order, intercept, rate, state, out);
      },
      X.row_view());
  return out;
}

}  // namespace hinge
