#include "core/blocks.hpp"

namespace hinge {
namespace {

HINGE_HOT void widen(const float* __restrict x, index_t stride, index_t m, index_t d, double* __restrict out) {
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < d; ++j) out[i * d + j] = static_cast<double>(x[i * stride + j]);
}

// Eight columns at a time, so that each write covers eight adjacent entries.
template <class T>
HINGE_HOT void transpose(const T* __restrict x, index_t stride, index_t m, index_t d, double* __restrict out) {
  index_t j = 0;
  for (; j + 8 <= d; j += 8)
    for (index_t i = 0; i < m; ++i)
      for (index_t q = 0; q < 8; ++q) out[i * d + j + q] = static_cast<double>(x[(j + q) * stride + i]);
  for (; j < d; ++j)
    for (index_t i = 0; i < m; ++i) out[i * d + j] = static_cast<double>(x[j * stride + i]);
}

}  // namespace

Block RowBlocks::at(index_t begin, index_t end, double* buffer) const {
  if (const auto* rows = std::get_if<DenseRowView<double>>(&rows_))
    return {rows->data + begin * rows->stride, rows->stride};
  if (const auto* rows = std::get_if<DenseRowView<float>>(&rows_))
    widen(rows->data + begin * rows->stride, rows->stride, end - begin, d_, buffer);
  else if (const auto* columns = std::get_if<DenseColumnView<double>>(&columns_))
    transpose(columns->data + begin, columns->stride, end - begin, d_, buffer);
  else if (const auto* columns = std::get_if<DenseColumnView<float>>(&columns_))
    transpose(columns->data + begin, columns->stride, end - begin, d_, buffer);
  return {buffer, d_};
}

}  // namespace hinge
