#include "trees/bundle.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/pool.hpp"

namespace hinge::trees {
namespace {

constexpr int kCodes = 255;             // of one slot; 255 is the code of a missing value
constexpr index_t kLook = 4096;         // rows that decide whether all rows of a column are counted
constexpr double kOften = 0.8;          // a column outside its usual bin more often than this has its own slot
constexpr std::size_t kAttempts = 256;  // slots tried for a feature

struct Candidate {
  index_t feature = 0;
  int usual = -1;    // -1: not a candidate
  index_t away = 0;  // rows outside the usual bin
};

// The bin of zero if there is one, otherwise the most frequent bin. Of the two columns of a one-hot binary category one
// is 1 more often than 0; the two columns never leave their usual bins in the same row only if that bin is zero.
int usual_bin(const Feature& f, const std::array<index_t, kBins>& count) {
  for (int b = 0; b < f.bins; ++b)
    if (f.low[b] <= 0 && f.high[b] >= 0) return b;
  return static_cast<int>(std::max_element(count.begin(), count.begin() + f.bins) - count.begin());
}

Candidate look(const Bins& bins, index_t j) {
  const Feature& f = bins.features[j];
  Candidate c{j, -1, 0};
  if (f.categorical || f.missing || f.bins < 2) return c;
  const std::uint8_t* column = bins.col(j);
  std::array<index_t, kBins> count{};
  const auto away = [&](index_t n) { return n - count[usual_bin(f, count)]; };
  const auto tally = [&](index_t begin, index_t end) {
    if (f.bins == 2) {
      const index_t ones = std::count(column + begin, column + end, std::uint8_t{1});
      count[0] += end - begin - ones, count[1] += ones;
    } else {
      for (index_t i = begin; i < end; ++i) ++count[column[i]];
    }
  };
  const index_t first = std::min(kLook, bins.rows);
  tally(0, first);
  if (static_cast<double>(away(first)) > kOften * static_cast<double>(first)) return c;
  tally(first, bins.rows);
  c.away = away(bins.rows);
  if (static_cast<double>(c.away) <= kOften * static_cast<double>(bins.rows)) c.usual = usual_bin(f, count);
  return c;
}

using Bits = std::vector<std::uint64_t>;

Bits rows_away(const Bins& bins, const Candidate& c) {
  Bits bits((bins.rows + 63) / 64, 0);
  const std::uint8_t* column = bins.col(c.feature);
  for (index_t i = 0; i < bins.rows; ++i) bits[i >> 6] |= static_cast<std::uint64_t>(column[i] != c.usual) << (i & 63);
  return bits;
}

bool meet(const Bits& a, const Bits& b) {
  for (std::size_t k = 0; k < a.size(); ++k)
    if (a[k] & b[k]) return true;
  return false;
}

struct Shared {
  Slot slot;
  Bits taken;
  index_t away = 0;
};

// First fit, in order of decreasing number of rows outside the usual bin.
std::vector<Shared> share(const Bins& bins, const std::vector<Candidate>& candidates) {
  std::vector<Shared> shared;
  for (const Candidate& c : candidates) {
    const int more = bins.features[c.feature].bins - 1;
    const Bits bits = rows_away(bins, c);
    const auto fits = [&](const Shared& s) {
      return s.slot.codes + more <= kCodes && s.away + c.away <= bins.rows && !meet(s.taken, bits);
    };
    const auto tried = shared.begin() + static_cast<std::ptrdiff_t>(std::min(shared.size(), kAttempts));
    const auto place = std::find_if(shared.begin(), tried, fits);
    if (place == tried) {
      shared.push_back({{{{c.feature, 1, c.usual}}, 1 + more, 0}, bits, c.away});
      continue;
    }
    place->slot.parts.push_back({c.feature, place->slot.codes, c.usual});
    place->slot.codes += more;
    place->away += c.away;
    for (std::size_t k = 0; k < bits.size(); ++k) place->taken[k] |= bits[k];
  }
  return shared;
}

}  // namespace

std::vector<Slot> make_slots(const Bins& bins, bool bundle) {
  std::vector<Candidate> candidates(bundle ? bins.cols : 0);
  parallel_for(static_cast<index_t>(candidates.size()), [&](index_t j) { candidates[j] = look(bins, j); });
  std::erase_if(candidates, [](const Candidate& c) { return c.usual < 0; });
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.away > b.away; });
  std::vector<Slot> slots;
  std::vector<std::uint8_t> placed(bins.cols, 0);
  if (candidates.size() > 1)
    for (Shared& s : share(bins, candidates)) {
      if (s.slot.parts.size() < 2) continue;
      for (const Part& part : s.slot.parts) placed[part.feature] = 1;
      std::sort(s.slot.parts.begin(), s.slot.parts.end(),
                [](const Part& a, const Part& b) { return a.feature < b.feature; });
      slots.push_back(std::move(s.slot));
    }
  for (index_t j = 0; j < bins.cols; ++j)
    if (!placed[j]) slots.push_back({{{j, 0, -1}}, bins.features[j].bins, 0});
  for (Slot& s : slots) s.span = bins.features[s.parts[0].feature].missing ? kBins : s.codes;
  return slots;
}

void slot_codes(const Part& part, int bins, std::uint8_t* codes) {
  for (int b = 0; b < bins; ++b)
    codes[b] = static_cast<std::uint8_t>(b == part.usual ? 0 : part.first + b - (b > part.usual));
}

}  // namespace hinge::trees
