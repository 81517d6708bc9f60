#include "core/gram_outer.hpp"

#include <algorithm>

namespace hinge {
namespace {

constexpr index_t kVectors = 3, kWidth = kOuterLanes * kVectors, kTall = 8;
static_assert(kWidth == kOuterWidth);

// sum (8 x 24) += sum over m rows of the outer product of left (8 entries) and right (24 entries), columns of panels.
HINGE_INLINE void add_tile(const double* left, const double* right, index_t m, double* sum, index_t stride) {
  OuterLanes total[kTall][kVectors] = {};
  for (index_t k = 0; k < m; ++k, left += kWidth, right += kWidth) {
    OuterLanes x[kVectors];
    for (index_t v = 0; v < kVectors; ++v) x[v] = *reinterpret_cast<const OuterLanes*>(right + v * kOuterLanes);
    for (index_t r = 0; r < kTall; ++r)
      for (index_t v = 0; v < kVectors; ++v) total[r][v] += left[r] * x[v];
  }
  for (index_t r = 0; r < kTall; ++r)
    for (index_t v = 0; v < kVectors; ++v)
      *reinterpret_cast<OuterLanes*>(sum + r * stride + v * kOuterLanes) += total[r][v];
}

// Adds the tiles on and below the diagonal; tiles with rows beyond d contain zeros and are skipped.
HINGE_HOT void add_tiles(const double* panel, index_t panels, index_t m, index_t d, double* sum) {
  const index_t size = OuterSum::kBlock * kWidth, stride = panels * kWidth;
  for (index_t p = 0; p < panels; ++p)
    for (index_t row = p * kWidth; row < d; row += kTall)
      add_tile(panel + row / kWidth * size + row % kWidth, panel + p * size, m, sum + row * stride + p * kWidth,
               stride);
}

}  // namespace

bool OuterSum::suits(index_t d) {
#if defined(__x86_64__) && defined(__GNUC__)
  // With fewer columns padding to whole panels wastes too much; with more the sums leave the cache between blocks.
  return d >= 12 && d <= 512 && __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

OuterSum::OuterSum(index_t d)
    : d_(d),
      panels_((d + kWidth - 1) / kWidth),
      panel_(panels_ * kBlock * kWidth),
      sum_(panels_ * panels_ * kWidth * kWidth) {}

void OuterSum::flush() {
  add_tiles(panel_.data(), panels_, held_, d_, sum_.data());
  held_ = 0;
}

void OuterSum::finish(double* G) {
  flush();
  const index_t stride = panels_ * kWidth;
  for (index_t i = 0; i < d_; ++i)
    for (index_t j = 0; j <= i; ++j) G[j * d_ + i] = sum_[i * stride + j];
}

}  // namespace hinge
