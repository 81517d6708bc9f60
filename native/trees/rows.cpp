#include "trees/rows.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/pool.hpp"
#include "core/random.hpp"
#include "trees/gathers.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kPad = 64;  // padding behind the row numbers, for prefetches that read ahead
constexpr index_t kChunk = 1 << 13;

struct Sides {
  index_t left = 0, right = 0;
};

// Moves the rows from `first` on that go left to the front and the others to `spare`, appending to both in order;
// returns the total number that went left.
template <class Test>
HINGE_INLINE index_t separate(std::uint32_t* rows, index_t first, index_t n, std::uint32_t* spare, Sides sides,
                              const Test& left) {
  index_t nl = sides.left, nr = sides.right;
  for (index_t i = first; i < n; ++i) {
    const std::uint32_t row = rows[i];
    const bool l = left(row);
    rows[nl] = row;
    spare[nr] = row;
    nl += l;
    nr += !l;
  }
  return nl;
}

// The same for as many rows as fill whole vectors: a row goes left if its byte plus `shift` is at most `most`. Reads up
// to three bytes past the column.
#if defined(HINGE_AVX512)
HINGE_AVX512 Sides separate_many(std::uint32_t* rows, index_t n, std::uint32_t* spare, const std::uint8_t* column,
                                 int shift, int most) {
  index_t nl = 0, nr = 0;
  const __m512i byte = _mm512_set1_epi32(0xff), by = _mm512_set1_epi32(shift), limit = _mm512_set1_epi32(most);
  for (index_t i = 0; i + 16 <= n; i += 16) {
    const __m512i row = _mm512_loadu_si512(rows + i);
    const __m512i bin = _mm512_and_si512(_mm512_add_epi32(_mm512_i32gather_epi32(row, column, 1), by), byte);
    const __mmask16 left = _mm512_cmple_epu32_mask(bin, limit);
    const int count = __builtin_popcount(left);
    _mm512_storeu_si512(rows + nl, _mm512_maskz_compress_epi32(left, row));
    _mm512_storeu_si512(spare + nr, _mm512_maskz_compress_epi32(static_cast<__mmask16>(~left), row));
    nl += count, nr += 16 - count;
  }
  return {nl, nr};
}
#else
Sides separate_many(std::uint32_t*, index_t, std::uint32_t*, const std::uint8_t*, int, int) { return {}; }
#endif

}  // namespace

void LeafRows::start(index_t n, double share, std::uint64_t seed, index_t first) {
  rows_.resize(n + kPad), spare_.resize(n + kPad);
  all_ = used_ = n;
  if (share >= 1) {
    parallel_ranges(n, kChunk, [&](index_t begin, index_t end) {
      std::iota(rows_.begin() + begin, rows_.begin() + end, static_cast<std::uint32_t>(begin));
    });
    return;
  }
  const Random random(seed, 0x5A3B);
  index_t in = 0, out = 0;
  for (index_t i = 0; i < n; ++i) {
    if (random.uniform_at(first + i) < share)
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
  // If missing values go left, 255 + 1 wraps to 0, which is below every threshold.
  const int shift = missing_left ? 1 : 0;
  const bool many = !set && have_gathers() && bins.rows < std::numeric_limits<std::int32_t>::max();
  const auto run = [&](std::uint32_t* from, index_t n, std::uint32_t* spare) {
    if (set)
      return separate(from, 0, n, spare, {}, [&](std::uint32_t row) {
        return column[row] == kMissing ? missing_left : contains(set, column[row]);
      });
    const Sides sides = many ? separate_many(from, n, spare, column, shift, bin + shift) : Sides{};
    return separate(from, sides.left + sides.right, n, spare, sides,
                    [&](std::uint32_t row) { return static_cast<std::uint8_t>(column[row] + shift) <= bin + shift; });
  };
  const index_t n = end - begin;
  std::uint32_t* rows = rows_.data() + begin;
  std::uint32_t* spare = spare_.data() + begin;
  const index_t parts = (n + kChunk - 1) / kChunk;
  if (parts <= 1) {
    const index_t left = run(rows, n, spare);
    std::copy(spare, spare + (n - left), rows + left);
    return left;
  }
  // Writes each chunk to `spare`, the rows that go right first; then all pieces are copied to their places.
  std::vector<Sides> sides(parts), to(parts);
  parallel_for(parts, [&](index_t p) {
    const index_t b = p * kChunk, size = std::min(kChunk, n - b), left = run(rows + b, size, spare + b);
    sides[p] = {left, size - left};
    std::copy_n(rows + b, left, spare + b + size - left);
  });
  Sides all;
  for (index_t p = 0; p < parts; ++p) {
    to[p] = all;
    all.left += sides[p].left, all.right += sides[p].right;
  }
  parallel_for(parts, [&](index_t p) {
    const std::uint32_t* from = spare + p * kChunk;
    std::copy_n(from, sides[p].right, rows + all.left + to[p].right);
    std::copy_n(from + sides[p].right, sides[p].left, rows + to[p].left);
  });
  return all.left;
}

}  // namespace hinge::trees
