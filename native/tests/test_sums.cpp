// Sums of outer products in registers, sorting by digits, and random numbers.
#include <algorithm>
#include <limits>
#include <numeric>

#include "core/gram_narrow.hpp"
#include "core/gram_outer.hpp"
#include "core/packed_rows.hpp"
#include "core/random.hpp"
#include "tests/check.hpp"
#include "trees/radix.hpp"

namespace {

using hinge::index_t;

// A = sum h_i a_i a_i', entry by entry.
std::vector<double> outer(const std::vector<double>& rows, index_t n, index_t m, const double* h) {
  std::vector<double> A(m * m, 0.0);
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < m; ++j)
      for (index_t k = 0; k < m; ++k) A[j * m + k] += (h ? h[i] : 1.0) * rows[i * m + j] * rows[i * m + k];
  return A;
}

// The rows of x, each with 1 and y behind it.
std::vector<double> with_target(const std::vector<double>& x, const std::vector<double>& y, index_t n, index_t d) {
  std::vector<double> rows;
  for (index_t i = 0; i < n; ++i) {
    rows.insert(rows.end(), x.begin() + i * d, x.begin() + (i + 1) * d);
    rows.push_back(1.0), rows.push_back(y[i]);
  }
  return rows;
}

template <class T>
void check_packed(double tolerance) {
  hinge::Random random(2);
  const index_t group = hinge::PackedRows<T>::kGroup;
  for (const index_t d : {1, 3, 50})
    for (const index_t n : {index_t{1}, group - 1, group, 2 * group + 5})
      for (const index_t m : {1, 5, 12, 31}) {
        const index_t stride = d + 2, ldo = 4 * group;
        std::vector<T> a(m * stride), b(n * stride), out(m * ldo, T(7));
        for (T& v : a) v = static_cast<T>(random.normal());
        for (T& v : b) v = static_cast<T>(random.normal());
        hinge::PackedRows<T> packed;
        packed.pack(b.data(), stride, n, d);
        packed.products(a.data(), stride, m, out.data(), ldo);
        for (index_t r = 0; r < m; ++r) {
          for (index_t c = 0; c < n; ++c) {
            double dot = 0;
            for (index_t k = 0; k < d; ++k) dot += static_cast<double>(a[r * stride + k]) * b[c * stride + k];
            CHECK(hinge::tests::close(out[r * ldo + c], dot, tolerance));
          }
          CHECK(out[r * ldo + (n + group - 1) / group * group] == T(7));  // nothing is written behind the last group
        }
      }
}

TEST("inner products of packed rows, for every remainder") {
  check_packed<float>(1e-5);
  check_packed<double>(1e-13);
}

TEST("outer products of short rows, for every width") {
  hinge::Random random(1);
  for (index_t d = 1; d <= 16; ++d)
    for (const index_t n : {1, 2, 9, 500}) {
      if (!hinge::narrow_suits(d + 2)) continue;
      std::vector<double> x(n * d), y(n), h(n);
      for (double& v : x) v = random.normal();
      for (index_t i = 0; i < n; ++i) y[i] = random.normal(), h[i] = i % 3 ? random.uniform() : 0.0;
      std::vector<double> A((d + 2) * (d + 2));
      hinge::narrow_gram(x.data(), d, n, d, h.data(), y.data(), A.data());
      const std::vector<double> wanted = outer(with_target(x, y, n, d), n, d + 2, h.data());
      for (std::size_t k = 0; k < A.size(); ++k) CHECK(hinge::tests::close(A[k], wanted[k], 1e-12));
    }
}

TEST("outer products of longer rows, across the width of a panel") {
  hinge::Random random(2);
  for (const index_t d : {8, 23, 24, 25, 47, 48, 60, 130})
    for (const index_t n : {1, 127, 128, 300}) {
      if (!hinge::OuterSum::suits(d + 2)) continue;
      std::vector<double> x(n * d + 8), y(n), h(n);
      for (double& v : x) v = random.normal();
      for (index_t i = 0; i < n; ++i) y[i] = random.normal(), h[i] = i % 4 ? random.uniform() : 0.0;
      hinge::OuterSum sum(d + 2);
      const index_t half = n / 2;
      const auto row = [&](index_t i) { return x.data() + i * d; };
      sum.add(row, 0, half, h.data(), y.data());
      sum.add(row, half, n, h.data(), y.data());
      std::vector<double> A((d + 2) * (d + 2));
      sum.finish(A.data());
      const std::vector<double> wanted = outer(with_target(x, y, n, d), n, d + 2, h.data());
      for (index_t j = 0; j < d + 2; ++j)
        for (index_t i = j; i < d + 2; ++i)
          CHECK(hinge::tests::close(A[j * (d + 2) + i], wanted[j * (d + 2) + i], 1e-12));
    }
}

template <class T>
void sort_like_std(std::size_t n) {
  hinge::Random random(n);
  std::vector<T> values(n);
  for (T& v : values) v = static_cast<T>(std::ldexp(random.normal(), static_cast<int>(random.below(40)) - 20));
  for (std::size_t i = 0; i < n; i += 7) values[i] = i % 2 ? T(0) : T(-0.0);
  if (n > 3) values[1] = std::numeric_limits<T>::infinity(), values[2] = -values[1], values[3] = T(1e-40);
  std::vector<hinge::trees::Key<T>> keys;
  for (const T v : values) keys.push_back(hinge::trees::to_key(v));
  std::vector<std::uint32_t> rows(n), wanted(n);
  std::iota(rows.begin(), rows.end(), 0u);
  std::iota(wanted.begin(), wanted.end(), 0u);
  std::stable_sort(wanted.begin(), wanted.end(), [&](auto a, auto b) { return values[a] < values[b]; });
  hinge::trees::radix_sort(keys, rows);
  CHECK(rows == wanted);
  for (std::size_t i = 0; i < n; ++i) CHECK(hinge::trees::from_key<T>(keys[i]) == values[wanted[i]]);
}

TEST("sorting by digits is a stable sort of the numbers") {
  for (const std::size_t n : {0, 1, 2, 47, 48, 49, 1000, 5000}) sort_like_std<float>(n), sort_like_std<double>(n);
}

TEST("random numbers: a shuffle is a permutation, draws below n are even, streams differ") {
  hinge::Random random(3);
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  random.shuffle(items.data(), 100);
  CHECK(!std::is_sorted(items.begin(), items.end()));
  std::sort(items.begin(), items.end());
  for (int i = 0; i < 100; ++i) CHECK(items[i] == i);
  int count[7] = {};
  for (int i = 0; i < 70000; ++i) ++count[random.below(7)];
  for (const int c : count) CHECK(std::abs(c - 10000) < 500);  // more than five standard deviations
  CHECK(hinge::Random(3, 0).bits_at(5) != hinge::Random(3, 1).bits_at(5));
  CHECK(hinge::Random(3, 0).bits_at(5) == hinge::Random(3, 0).bits_at(5));
}

}  // namespace
