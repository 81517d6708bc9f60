#include "core/cholesky.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/blas.hpp"
#include "core/pool.hpp"
#include "core/vec.hpp"

namespace hinge {
namespace {

constexpr index_t kPanel = 128;                // columns eliminated at once
constexpr index_t kTile = 256;                 // tiles of the trailing matrix, updated in parallel
constexpr index_t kStrip = 512, kColumns = 8;  // rows and columns of one piece of a triangular solve

}  // namespace

bool cholesky(index_t n, double* a, index_t ld) {
  if (n <= 2 * kPanel) return blas::potrf('L', n, a, ld);
  std::vector<std::pair<index_t, index_t>> tiles;
  for (index_t k = 0; k < n; k += kPanel) {
    const index_t width = std::min(kPanel, n - k), next = k + width, trailing = n - next;
    if (!blas::potrf('L', width, a + k * ld + k, ld)) return false;
    if (trailing == 0) break;
    const index_t strips = (trailing + kTile - 1) / kTile;
    parallel_for(strips, [&](index_t s) {
      const index_t r = next + s * kTile, rows = std::min(kTile, n - r);
      blas::trsm('R', 'L', 'T', 'N', rows, width, 1.0, a + k * ld + k, ld, a + k * ld + r, ld);
    });
    tiles.clear();
    for (index_t i = 0; i < strips; ++i)
      for (index_t j = 0; j <= i; ++j) tiles.emplace_back(i, j);
    parallel_for(static_cast<index_t>(tiles.size()), [&](index_t t) {
      const index_t r = next + tiles[t].first * kTile, c = next + tiles[t].second * kTile;
      const index_t rows = std::min(kTile, n - r), cols = std::min(kTile, n - c);
      if (r == c)
        blas::syrk('L', 'N', rows, width, -1.0, a + k * ld + r, ld, 1.0, a + c * ld + r, ld);
      else
        blas::gemm('N', 'T', rows, cols, width, -1.0, a + k * ld + r, ld, a + k * ld + c, ld, 1.0, a + c * ld + r, ld);
    });
  }
  return true;
}

void cholesky_solve(index_t n, const double* a, index_t ld, index_t nrhs, double* b) {
  const index_t panels = (n + kPanel - 1) / kPanel;
  for (index_t p = 0; p < panels; ++p) {  // L x = b
    const index_t k = p * kPanel, width = std::min(kPanel, n - k), next = k + width;
    blas::trsm('L', 'L', 'N', 'N', width, nrhs, 1.0, a + k * ld + k, ld, b + k, n);
    parallel_ranges(n - next, kStrip, [&](index_t begin, index_t end) {
      const double* below = a + k * ld + next + begin;
      double* trailing = b + next + begin;
      if (nrhs > 1 && begin < end)
        blas::gemm('N', 'N', end - begin, nrhs, width, -1.0, below, ld, b + k, n, 1.0, trailing, n);
      else
        for (index_t c = 0; c < width; ++c) vec::axpy(-b[k + c], below + c * ld, trailing, end - begin);
    });
  }
  for (index_t p = panels; p-- > 0;) {  // L' x = b
    const index_t k = p * kPanel, width = std::min(kPanel, n - k), next = k + width, trailing = n - next;
    parallel_ranges(trailing > 0 ? width : 0, kColumns, [&](index_t begin, index_t end) {
      const double* below = a + (k + begin) * ld + next;
      if (nrhs > 1 && begin < end)
        blas::gemm('T', 'N', end - begin, nrhs, trailing, -1.0, below, ld, b + next, n, 1.0, b + k + begin, n);
      else
        for (index_t c = begin; c < end; ++c) b[k + c] -= vec::dot(a + (k + c) * ld + next, b + next, trailing);
    });
    blas::trsm('L', 'L', 'T', 'N', width, nrhs, 1.0, a + k * ld + k, ld, b + k, n);
  }
}

}  // namespace hinge
