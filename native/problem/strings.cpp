#include "problem/strings.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/pool.hpp"

namespace hinge {
namespace {

constexpr index_t kLanes = 16;  // strings compared at a time: two vectors of eight
using Eight [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = double;
constexpr std::int32_t kNoLetter = -1;  // after the end of a string that is shorter than others of its pack

// Some strings side by side: letter[j * kLanes + l] is letter j of string l.
struct Pack {
  std::vector<index_t> which;
  index_t length = 0;  // of the longest
  std::vector<std::int32_t> letter;
};

// Strings of about the same length go together.
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

// One string against a pack. rows holds K'_q(i, j) of Lodhi et al. for q < length and all j, of the i at hand; it is
// updated from the highest q down, so that row q - 1 is still that of i - 1. `match` is decay^2 where letters agree.
HINGE_HOT void subsequence(const std::int32_t* s, index_t m, const Pack& pack, int length, double decay,
                           std::vector<double>& rows, std::vector<double>& match, double* __restrict total) {
  const index_t n = pack.length, width = (n + 1) * kLanes;
  rows.assign(length * width, 0.0);
  std::fill_n(rows.begin(), width, 1.0);
  match.resize(n * kLanes);
  std::fill_n(total, kLanes, 0.0);
  const double square = decay * decay;
  for (index_t i = 0; i < m; ++i) {
    for (index_t k = 0; k < n * kLanes; ++k) match[k] = pack.letter[k] == s[i] ? square : 0.0;
    const double* last = rows.data() + (length - 1) * width;
    for (index_t j = length - 1; j < n; ++j)
      for (index_t l = 0; l < kLanes; ++l) total[l] += match[j * kLanes + l] * last[j * kLanes + l];
    for (int q = std::min<int>(length - 1, static_cast<int>(i) + 1); q >= 1; --q) {
      const double* __restrict below = rows.data() + (q - 1) * width;
      double* __restrict row = rows.data() + q * width;
      const double* __restrict weight = match.data();
      Eight run[2] = {};
      for (index_t j = q - 1; j < n; ++j)
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          const index_t k = j * kLanes + 8 * half;
          Eight& out = *reinterpret_cast<Eight*>(row + k + kLanes);
          run[half] = decay * run[half] +
                      *reinterpret_cast<const Eight*>(weight + k) * *reinterpret_cast<const Eight*>(below + k);
          out = decay * out + run[half];
        }
    }
  }
}

}  // namespace

void subsequence_gram(const Strings& a, const Strings& b, int length, double decay, bool same, double* out) {
  const std::vector<Pack> packs = make_packs(b);
  std::vector<index_t> rank(b.n);  // where a string is in the packs
  for (std::size_t p = 0; p < packs.size(); ++p)
    for (std::size_t l = 0; l < packs[p].which.size(); ++l)
      rank[packs[p].which[l]] = static_cast<index_t>(p) * kLanes + static_cast<index_t>(l);
  const index_t parts = parts_for(a.n, 1, 256);
  parallel_for(parts, [&](index_t part) {
    std::vector<double> rows, match;
    double total[kLanes];
    for (index_t i = range_begin(a.n, parts, part); i < range_begin(a.n, parts, part + 1); ++i)
      for (std::size_t p = same ? rank[i] / kLanes : 0; p < packs.size(); ++p) {
        subsequence(a.letters + a.start[i], a.start[i + 1] - a.start[i], packs[p], length, decay, rows, match, total);
        for (std::size_t l = 0; l < packs[p].which.size(); ++l) {
          const index_t j = packs[p].which[l];
          if (same && rank[j] < rank[i]) continue;  // found from the other side
          out[i * b.n + j] = total[l];
          if (same) out[j * b.n + i] = total[l];
        }
      }
  });
}

}  // namespace hinge
