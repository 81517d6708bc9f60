#include "models/tree_rows.hpp"

#include <algorithm>
#include <numeric>

#include "core/pool.hpp"
#include "core/random.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kPad = 64;  // room behind the row numbers, for prefetches that run ahead
constexpr index_t kChunk = 1 << 15;

// Moves the rows that go left to the front, the others to `spare`, both in order; returns how many went left.
template <class Test>
HINGE_INLINE index_t separate(const std::uint32_t* rows, index_t n, std::uint32_t* out, std::uint32_t* spare,
                              const Test& left) {
  index_t nl = 0, nr = 0;
  for (index_t i = 0; i < n; ++i) {
    const std::uint32_t row = rows[i];
    const bool l = left(row);
    out[nl] = row;
    spare[nr] = row;
    nl += l;
    nr += !l;
  }
  return nl;
}

}  // namespace

void LeafRows::start(index_t n, double share, std::uint64_t seed) {
  rows_.resize(n + kPad), spare_.resize(n + kPad);
  all_ = used_ = n;
  if (share >= 1) {
    std::iota(rows_.begin(), rows_.begin() + n, 0u);
    return;
  }
  const Random random(seed, 0x5A3B);
  index_t in = 0, out = 0;
  for (index_t i = 0; i < n; ++i) {
    if (random.uniform_at(i) < share)
      rows_[in++] = static_cast<std::uint32_t>(i);
    else
      spare_[out++] = static_cast<std::uint32_t>(i);
  }
  std::copy(spare_.begin(), spare_.begin() + out, rows_.begin() + in);
  used_ = in;
}

index_t LeafRows::split(const Bins& bins, const Nodes& tree, std::int32_t node, index_t begin, index_t end) {
  const std::uint8_t* column = bins.col(tree.feature[node]);
  const int bin = tree.bin[node];
  const bool missing_left = tree.missing_left[node];
  const std::uint32_t* set = tree.set[node] >= 0 ? tree.sets.data() + 8 * tree.set[node] : nullptr;
  const auto run = [&](std::uint32_t* from, index_t n, std::uint32_t* out, std::uint32_t* spare) {
    if (set)
      return separate(from, n, out, spare, [&](std::uint32_t row) {
        return column[row] == kMissing ? missing_left : contains(set, column[row]);
      });
    if (missing_left)  // 255 + 1 wraps to 0, below every threshold
      return separate(from, n, out, spare,
                      [&](std::uint32_t row) { return static_cast<std::uint8_t>(column[row] + 1) <= bin + 1; });
    return separate(from, n, out, spare, [&](std::uint32_t row) { return column[row] <= bin; });
  };
  const index_t n = end - begin;
  std::uint32_t* rows = rows_.data() + begin;
  std::uint32_t* spare = spare_.data() + begin;
  const index_t parts = (n + kChunk - 1) / kChunk;
  if (parts <= 1) {
    const index_t left = run(rows, n, rows, spare);
    std::copy(spare, spare + (n - left), rows + left);
    return left;
  }
  // Chunk by chunk in place, then the pieces are put together through `spare`.
  std::vector<index_t> lefts(parts);
  parallel_for(parts, [&](index_t p) {
    const index_t b = p * kChunk, size = std::min(kChunk, n - b);
    lefts[p] = run(rows + b, size, rows + b, spare + b);
  });
  std::vector<index_t> to(parts);
  index_t left = 0, right = 0;
  for (index_t p = 0; p < parts; ++p) {
    to[p] = left;
    left += lefts[p];
  }
  // Left pieces only move down, one after the other; right pieces are in `spare` and go to their places in parallel.
  for (index_t p = 1; p < parts; ++p) std::copy_n(rows + p * kChunk, lefts[p], rows + to[p]);
  std::vector<index_t> right_to(parts);
  for (index_t p = 0; p < parts; ++p) {
    right_to[p] = left + right;
    right += std::min(kChunk, n - p * kChunk) - lefts[p];
  }
  parallel_for(parts, [&](index_t p) {
    std::copy_n(spare + p * kChunk, std::min(kChunk, n - p * kChunk) - lefts[p], rows + right_to[p]);
  });
  return left;
}

}  // namespace hinge::trees
