#include "problem/strings.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/pool.hpp"

namespace hinge {
namespace {

constexpr index_t kLanes = 16;  // strings compared at a time: two vectors of eight
using Eight [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = double;
constexpr double kNoLetter = -1;  // padding of strings that are shorter than the longest of their pack
constexpr int kTogether = 4;      // word lengths in one pass, as many as fit in registers

// Interleaved strings: letter[j * kLanes + l] is letter j of string l.
struct Pack {
  std::vector<index_t> which;
  index_t length = 0;          // of the longest
  std::vector<double> letter;  // integers in double, compared without conversion
};

// Strings of similar length share a pack.
std::vector<Pack> make_packs(const Strings& b) {
  const auto length = [&](index_t i) { return b.start[i + 1] - b.start[i]; };
  std::vector<index_t> order(b.n);
  std::iota(order.begin(), order.end(), index_t{0});
  std::stable_sort(order.begin(), order.end(), [&](index_t i, index_t j) { return length(i) < length(j); });
  std::vector<Pack> packs((b.n + kLanes - 1) / kLanes);
  for (std::size_t p = 0; p < packs.size(); ++p) {
    const index_t begin = static_cast<index_t>(p) * kLanes, end = std::min(b.n, begin + kLanes);
    packs[p].which.assign(order.begin() + begin, order.begin() + end);
    packs[p].length = length(order[end - 1]);
    packs[p].letter.assign(packs[p].length * kLanes, kNoLetter);
    for (index_t l = 0; l < end - begin; ++l)
      for (index_t j = 0; j < length(order[begin + l]); ++j)
        packs[p].letter[j * kLanes + l] = b.letters[b.start[order[begin + l]] + j];
  }
  return packs;
}

// Computes K'_q(i, j) of Lodhi et al. from K'_q(i - 1, j), in place, for the G values of q from `first` on; `letter` is
// letter i of the string. With kTop the last q is the word length, and `total` receives the words that end here.
template <int G, bool kTop>
HINGE_INLINE void advance(const Pack& pack, double letter, double decay, double* rows, int first, Eight* total) {
  const index_t n = pack.length, width = (n + 1) * kLanes;
  const double* t = pack.letter.data();
  const double* below = rows + (first - 1) * width;
  double* row = rows + first * width;
  const Eight none = {}, square = none + decay * decay;
  Eight run[G + 1][2] = {}, old[G + 1][2] = {};  // of K'_q(i - 1, j), because row q already belongs to i
  Eight sum[2] = {total[0], total[1]};
  for (index_t j = 0; j < n; ++j)
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const index_t k = j * kLanes + 8 * half;
      const Eight match = *reinterpret_cast<const Eight*>(t + k) == letter ? square : none;
      const Eight lowest = *reinterpret_cast<const Eight*>(below + k);
      if constexpr (kTop) sum[half] += match * (G > 0 ? old[G > 0 ? G - 1 : 0][half] : lowest);
#pragma GCC unroll 4
      for (int g = G - 1; g >= 0; --g)
        run[g][half] = decay * run[g][half] + match * (g > 0 ? old[g > 0 ? g - 1 : 0][half] : lowest);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) {
        Eight& cell = *reinterpret_cast<Eight*>(row + g * width + k + kLanes);
        old[g][half] = cell;
        cell = decay * cell + run[g][half];
      }
    }
  total[0] = sum[0], total[1] = sum[1];
}

// One string against a pack, from the longest words down, because row q needs row q - 1 of the previous letter.
HINGE_HOT void subsequence(const std::int32_t* s, index_t m, const Pack& pack, int length, double decay, double* rows,
                           double* out) {
  const index_t width = (pack.length + 1) * kLanes;
  std::fill_n(rows, width, 1.0);
  std::fill_n(rows + width, (length - 1) * width, 0.0);
  Eight total[2] = {};
  for (index_t i = 0; i < m; ++i) {
    const double letter = s[i];
    int left = length - 1;
    switch (std::min(left, kTogether)) {
      case 0:
        advance<0, true>(pack, letter, decay, rows, 1, total);
        break;
      case 1:
        advance<1, true>(pack, letter, decay, rows, left, total);
        break;
      case 2:
        advance<2, true>(pack, letter, decay, rows, left - 1, total);
        break;
      case 3:
        advance<3, true>(pack, letter, decay, rows, left - 2, total);
        break;
      default:
        advance<kTogether, true>(pack, letter, decay, rows, left - 3, total);
    }
    for (left -= std::min(left, kTogether); left > 0; --left) advance<1, false>(pack, letter, decay, rows, left, total);
  }
  for (index_t l = 0; l < kLanes; ++l) out[l] = total[l / 8][l % 8];
}

}  // namespace

void subsequence_gram(const Strings& a, const Strings& b, int length, double decay, bool same, double* out) {
  const std::vector<Pack> packs = make_packs(b);
  std::vector<index_t> rank(b.n);  // position of each string in the packs
  for (std::size_t p = 0; p < packs.size(); ++p)
    for (std::size_t l = 0; l < packs[p].which.size(); ++l)
      rank[packs[p].which[l]] = static_cast<index_t>(p) * kLanes + static_cast<index_t>(l);
  const index_t parts = parts_for(a.n, 1, 256);
  parallel_for(parts, [&](index_t part) {
    std::vector<double> rows;
    double total[kLanes];
    for (index_t i = range_begin(a.n, parts, part); i < range_begin(a.n, parts, part + 1); ++i)
      for (std::size_t p = same ? rank[i] / kLanes : 0; p < packs.size(); ++p) {
        rows.resize(length * (packs[p].length + 1) * kLanes);
        subsequence(a.letters + a.start[i], a.start[i + 1] - a.start[i], packs[p], length, decay, rows.data(), total);
        for (std::size_t l = 0; l < packs[p].which.size(); ++l) {
          const index_t j = packs[p].which[l];
          if (same && rank[j] < rank[i]) continue;  // computed as the pair (j, i)
          out[i * b.n + j] = total[l];
          if (same) out[j * b.n + i] = total[l];
        }
      }
  });
}

}  // namespace hinge
