#include "neighbors/brute.hpp"

#include <cmath>

#include "core/pool.hpp"

namespace hinge {
namespace {

constexpr index_t kQueries = 128;  // queries per pass over the points
constexpr index_t kLine = 256;     // points whose coordinates are gathered for direct distances

template <class T>
double sparse_key(const Distance& distance, const Points<T>& a, index_t i, const Points<T>& b, index_t j) {
  auto e = a.start[i], f = b.start[j];
  const auto a_end = a.start[i + 1], b_end = b.start[j + 1];
  double sum = 0, aa = 0, bb = 0;
  while (e < a_end || f < b_end) {
    const bool left = f == b_end || (e < a_end && a.column[e] <= b.column[f]);
    const bool right = e == a_end || (f < b_end && b.column[f] <= a.column[e]);
    const double x = left ? static_cast<double>(a.value[e++]) : 0.0,
                 y = right ? static_cast<double>(b.value[f++]) : 0.0;
    sum += (x - y) * (x - y);
    aa += x * x;
    bb += y * y;
  }
  return distance.metric == Metric::cosine && !(aa > 0 && bb > 0) ? 2.0 : sum;
}

template <class T>
double key_of(const Distance& distance, const Points<T>& a, index_t i, const Points<T>& b, index_t j) {
  if (a.sparse()) return sparse_key(distance, a, i, b, j);
  return pair_key<T>(distance, a.dense + i * a.d, b.dense + j * b.d, a.d);
}

// A centred and scaled copy in float, for products that exclude pairs.
struct Rough {
  Points<float> points;
  std::vector<float> numbers;
};

template <class T>
Rough rough_copy(const Points<T>& from, const std::vector<double>& centre, double scale) {
  Rough out;
  out.points.n = from.n;
  out.points.d = from.d;
  const index_t stored = from.sparse() ? from.start[from.n] : from.n * from.d;
  out.numbers.resize(stored);
  if (from.sparse()) {
    for (index_t e = 0; e < stored; ++e) out.numbers[e] = static_cast<float>(from.value[e] * scale);
    out.points.value = out.numbers.data();
    out.points.column = from.column;
    out.points.start = from.start;
  } else {
    parallel_ranges(from.n, 1 + (1 << 16) / (from.d + 1), [&](index_t begin, index_t end) {
      for (index_t i = begin; i < end; ++i)
        for (index_t j = 0; j < from.d; ++j)
          out.numbers[i * from.d + j] = static_cast<float>((from.dense[i * from.d + j] - centre[j]) * scale);
    });
    out.points.dense = out.numbers.data();
  }
  out.points.measure();
  return out;
}

// The mean of dense points, and a power of two that scales them to at most one.
template <class T>
double centre_and_scale(const Points<T>& points, std::vector<double>& centre) {
  double largest = 0;
  if (points.sparse()) {
    for (auto e = points.start[0]; e < points.start[points.n]; ++e)
      largest = std::max<double>(largest, std::fabs(points.value[e]));
  } else {
    for (index_t i = 0; i < points.n; ++i)
      for (index_t j = 0; j < points.d; ++j)
        centre[j] += static_cast<double>(points.dense[i * points.d + j]) / points.n;
    for (index_t i = 0; i < points.n; ++i)
      for (index_t j = 0; j < points.d; ++j)
        largest = std::max(largest, std::fabs(points.dense[i * points.d + j] - centre[j]));
  }
  return largest > 0 && std::isfinite(largest) ? std::exp2(-std::ceil(std::log2(largest))) : 1.0;
}

// The largest number of terms in a product of two rows.
template <class T>
index_t most_terms(const Points<T>& points) {
  if (!points.sparse()) return points.d;
  index_t most = 0;
  for (index_t i = 0; i < points.n; ++i) most = std::max<index_t>(most, points.start[i + 1] - points.start[i]);
  return most;
}

// Euclidean and cosine: |a|^2 + |b|^2 - 2 <a, b> in float excludes nearly all pairs; the others are computed in double.
template <class T>
void by_products(const Distance& distance, const Points<T>& a, const Points<T>& b, index_t k, bool same,
                 Neighbours& out) {
  std::vector<double> centre(b.d, 0.0);
  const double scale = centre_and_scale(b, centre);
  const Rough points = rough_copy(b, centre, scale);
  const Rough other = same ? Rough{} : rough_copy(a, centre, scale);
  const Points<float>& queries = same ? points.points : other.points;
  // A product of m terms in float has an error of at most m u |a||b|, u = 2^-24, either squared norm one of m u times
  // itself, and the copies one of u per coordinate. The margin is twice that, plus an allowance for subnormal numbers.
  const double margin = 8 * std::exp2(-24) * (static_cast<double>(most_terms(b)) + 16);
  const KernelProgram program{{KernelOp::distance, {1.0, 0.0, 0.0}}};
  parallel_for((a.n + kQueries - 1) / kQueries, [&](index_t part) {
    const index_t begin = part * kQueries, end = std::min(begin + kQueries, a.n);
    std::vector<Nearest> nearest(end - begin, Nearest(k));
    kernel_tiles<float>(
        program, queries, points.points, begin, end, [&](index_t i, index_t j0, index_t j1, const float* values) {
          Nearest& best = nearest[i - begin];
          const float* square = points.points.square.data();
          const double slack =
              margin * (static_cast<double>(queries.square[i]) + *std::max_element(square + j0, square + j1)) + 1e-30;
          const auto limit = [&] { return static_cast<float>((best.bound() * scale * scale + slack) * (1 + 1e-6)); };
          for (index_t j = j0; (j = j0 + next_within(values, j - j0, j1 - j0, limit())) < j1; ++j)
            if (!same || i != j) best.offer(key_of(distance, a, i, b, j), j);
        });
    for (index_t i = begin; i < end; ++i) nearest[i - begin].drain(out.key.data() + i * k, out.index.data() + i * k);
  });
}

// Other metrics: sums over coordinates, many points at a time.
template <class T>
void directly(const Distance& distance, const Points<T>& a, const Points<T>& b, index_t k, bool same, Neighbours& out) {
  const index_t d = a.d;
  const double margin = rounding_margin(d);
  parallel_for((a.n + kQueries - 1) / kQueries, [&](index_t part) {
    const index_t begin = part * kQueries, end = std::min(begin + kQueries, a.n);
    std::vector<Nearest> nearest(end - begin, Nearest(k));
    std::vector<double> lines(d * kLine), query((end - begin) * d), keys(kLine);
    for (index_t e = 0; e < (end - begin) * d; ++e) query[e] = a.dense[begin * d + e];
    for (index_t j0 = 0; j0 < b.n; j0 += kLine) {
      const index_t n = std::min(kLine, b.n - j0);
      for (index_t j = 0; j < n; ++j)
        for (index_t c = 0; c < d; ++c) lines[c * kLine + j] = b.dense[(j0 + j) * d + c];
      for (index_t i = begin; i < end; ++i) {
        Nearest& best = nearest[i - begin];
        direct_keys(distance, query.data() + (i - begin) * d, lines.data(), kLine, n, d, keys.data());
        for (index_t j = 0; (j = next_within(keys.data(), j, n, best.bound() * margin)) < n; ++j)
          if (!same || i != j0 + j) best.offer(key_of(distance, a, i, b, j0 + j), j0 + j);
      }
    }
    for (index_t i = begin; i < end; ++i) nearest[i - begin].drain(out.key.data() + i * k, out.index.data() + i * k);
  });
}

}  // namespace

template <class T>
Neighbours nearest_of_all(const Distance& distance, const Points<T>& queries, const Points<T>& points, index_t k,
                          bool same) {
  Neighbours out{std::vector<double>(queries.n * k), std::vector<index_t>(queries.n * k)};
  if (distance.metric == Metric::euclidean || distance.metric == Metric::cosine)
    by_products(distance, queries, points, k, same, out);
  else
    directly(distance, queries, points, k, same, out);
  return out;
}

template Neighbours nearest_of_all<float>(const Distance&, const Points<float>&, const Points<float>&, index_t, bool);
template Neighbours nearest_of_all<double>(const Distance&, const Points<double>&, const Points<double>&, index_t,
                                           bool);

}  // namespace hinge
