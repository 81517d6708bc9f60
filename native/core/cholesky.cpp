#include "core/cholesky.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/blas.hpp"
#include "core/pool.hpp"

namespace hinge {
namespace {

constexpr index_t kPanel = 128;  // columns eliminated at once
constexpr index_t kTile = 256;   // pieces of the rest that are updated side by side

}  // namespace

bool cholesky(index_t n, double* a, index_t ld) {
  if (n <= 2 * kPanel) return blas::potrf('L', n, a, ld);
  std::vector<std::pair<index_t, index_t>> tiles;
  for (index_t k = 0; k < n; k += kPanel) {
    const index_t width = std::min(kPanel, n - k), next = k + width, rest = n - next;
    if (!blas::potrf('L', width, a + k * ld + k, ld)) return false;
    if (rest == 0) break;
    const index_t strips = (rest + kTile - 1) / kTile;
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

}  // namespace hinge
