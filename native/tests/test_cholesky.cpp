#include "core/blas.hpp"
#include "core/changing_cholesky.hpp"
#include "core/cholesky.hpp"
#include "core/pool.hpp"
#include "core/random.hpp"
#include "tests/check.hpp"
#include "tests/plain_blas.hpp"

namespace {

using hinge::index_t;
using Matrix = std::vector<double>;

// B B' + I for a random B, column-major.
Matrix positive(index_t n, std::uint64_t seed) {
  hinge::Random random(seed);
  Matrix B(n * n), A(n * n);
  for (double& b : B) b = random.normal();
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) {
      double sum = i == j;
      for (index_t k = 0; k < n; ++k) sum += B[k * n + i] * B[k * n + j] / static_cast<double>(n);
      A[j * n + i] = sum;
    }
  return A;
}

TEST("cholesky: the factor times its transpose is the matrix, across the sizes of tiles") {
  hinge::tests::use_plain_blas();
  for (const index_t n : {1, 2, 100, 256, 257, 300, 384, 513, 650}) {
    const Matrix A = positive(n, n);
    Matrix L = A;
    CHECK(hinge::cholesky(n, L.data(), n));
    double worst = 0;
    for (index_t j = 0; j < n; ++j)
      for (index_t i = j; i < n; ++i) {
        double sum = 0;
        for (index_t k = 0; k <= j; ++k) sum += L[k * n + i] * L[k * n + j];
        worst = std::max(worst, std::fabs(sum - A[j * n + i]));
      }
    CHECK(worst < 1e-11);
    for (index_t j = 1; j < n; ++j) CHECK(L[j * n] == A[j * n]);  // above the diagonal nothing is written
  }
}

TEST("cholesky: the same bits for any number of threads") {
  hinge::tests::use_plain_blas();
  const index_t n = 600;
  const Matrix A = positive(n, 5);
  Matrix first;
  for (const int threads : {1, 2, 7, 16}) {
    hinge::set_num_threads(threads);
    Matrix L = A;
    CHECK(hinge::cholesky(n, L.data(), n));
    if (first.empty()) first = L;
    CHECK(L == first);
  }
  hinge::set_num_threads(0);
}

TEST("cholesky: an indefinite matrix is refused, wherever it shows") {
  hinge::tests::use_plain_blas();
  const index_t n = 400;
  for (const index_t at : {0, 127, 128, 300, 399}) {
    Matrix A = positive(n, 3);
    A[at * n + at] = -1.0;
    CHECK(!hinge::cholesky(n, A.data(), n));
  }
}

TEST("cholesky: solutions of several right sides") {
  hinge::tests::use_plain_blas();
  const index_t n = 330, sides = 5;
  const Matrix A = positive(n, 8);
  Matrix L = A, x(n * sides);
  hinge::Random random(1);
  for (double& v : x) v = random.normal();
  const Matrix b = x;
  CHECK(hinge::cholesky(n, L.data(), n));
  hinge::cholesky_solve(n, L.data(), n, sides, x.data());
  for (index_t s = 0; s < sides; ++s)
    for (index_t i = 0; i < n; ++i) {
      double sum = 0;
      for (index_t j = 0; j < n; ++j) sum += A[j * n + i] * x[s * n + j];
      CHECK(hinge::tests::close(sum, b[s * n + i], 1e-10));
    }
}

TEST("changing cholesky: after rows came and went it solves with those that are there") {
  hinge::tests::use_plain_blas();
  const index_t n = 40;
  const Matrix A = positive(n, 13);
  std::vector<index_t> rows;
  hinge::ChangingCholesky factor;
  hinge::Random random(2);
  index_t next = 0;
  for (int step = 0; step < 120; ++step) {
    if (rows.size() < 5 || (next < n && random.uniform() < 0.6)) {
      const index_t count = std::min<index_t>(n - next, 1 + random.below(3));
      if (count == 0) break;
      for (index_t k = 0; k < count; ++k) rows.push_back(next++);
      const auto m = static_cast<index_t>(rows.size());
      CHECK(factor.append(count, [&](index_t j, index_t i, double* out) {
        for (; i < m; ++i) *out++ = A[rows[j] * n + rows[i]];
      }));
    } else {
      const index_t r = random.below(static_cast<index_t>(rows.size()));
      factor.remove(r);
      rows.erase(rows.begin() + r);
    }
    const auto m = static_cast<index_t>(rows.size());
    CHECK(factor.order() == m);
    Matrix x(m, 1.0);
    factor.solve(x.data());
    for (index_t i = 0; i < m; ++i) {
      double sum = 0;
      for (index_t j = 0; j < m; ++j) sum += A[rows[j] * n + rows[i]] * x[j];
      CHECK(hinge::tests::close(sum, 1.0, 1e-9));
    }
  }
  CHECK(next == n);
}

}  // namespace
