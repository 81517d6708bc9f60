#include "trees/boost_block.hpp"

#include <algorithm>
#include <utility>

#include "core/pool.hpp"
#include "core/random.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kPlaced = 8192;  // rows moved and sorted together
constexpr index_t kSpare = 64;     // padding after the row numbers, for prefetches past the end

// The rows in narrow cells after m more were added by add_codes.
index_t held_after(index_t held, index_t m) {
  const index_t all = held + m;
  return all <= kBlock ? all : (all - 1) % kBlock + 1;
}

template <class Word>
HINGE_HOT Word largest(const Word* __restrict nodes, index_t rows) {
  Word most = 0;
  for (index_t i = 0; i < rows; ++i) most = std::max(most, static_cast<Word>(nodes[i] & NodeWord<Word>::kNumber));
  return most;
}

// Sorts the rows begin .. end of wanted nodes by the rank of the node, stably. Rows of other nodes, whose rank is n,
// and rows outside of the sample are left out. at: n + 1 numbers, set to where in `sorted` the rows of each rank begin.
template <class Word>
void sort_rows(const Word* nodes, index_t begin, index_t end, const std::uint32_t* rank, std::uint32_t n,
               std::uint32_t* sorted, std::uint32_t* at) {
  std::uint32_t rows[kPlaced], ranks[kPlaced];
  std::uint32_t m = 0;
  for (index_t i = begin; i < end; ++i) {
    const Word word = nodes[i];
    const std::uint32_t r = rank[word & NodeWord<Word>::kNumber];
    rows[m] = static_cast<std::uint32_t>(i), ranks[m] = r;
    m += static_cast<std::uint32_t>((r != n) & !(word & NodeWord<Word>::kLeftOut));
  }
  std::fill_n(at, n + 1, 0u);
  for (std::uint32_t j = 0; j < m; ++j) ++at[ranks[j]];
  for (std::uint32_t k = 0, sum = 0; k <= n; ++k) sum += std::exchange(at[k], sum);
  for (std::uint32_t j = 0; j < m; ++j) sorted[at[ranks[j]]++] = rows[j];
  for (std::uint32_t k = n; k > 0; --k) at[k] = at[k - 1];  // the ends of the ranks are the beginnings of the next ones
  at[0] = 0;
}

}  // namespace

// A node, packed for moving a row: the byte to read, and the limit up to which the row goes left. A leaf points to
// itself.
struct RouteStep {
  const std::uint8_t* byte;
  const std::uint32_t* set;  // categories that go left; null for a number
  std::int32_t left;
  std::uint8_t shift, missing_left;
  std::int16_t most;

  std::int32_t next(index_t row) const {
    const std::uint8_t code = byte[row * kGroup];
    if (set) return left + !(code == kMissing ? missing_left : contains(set, code));
    return left + !(static_cast<std::uint8_t>(code + shift) <= most);  // 255 + 1 is 0, below every limit
  }
};

// The steps of a route over a block.
class Steps {
 public:
  Steps(const Bins& layout, const std::uint8_t* codes, index_t rows, const Nodes& route)
      : steps_(route.size()), inner_(route.size()) {
    for (std::int32_t t = 0; t < route.size(); ++t) {
      if (route.left[t] < 0) {
        steps_[t] = {codes, nullptr, t, 0, 0, 255};
        continue;
      }
      inner_[t] = any_ = 1;
      const index_t f = route.feature[t];
      index_t group = 0;
      while (layout.group_begin[group + 1] <= f) ++group;  // the slots of a layout are its features
      const std::uint8_t missing_left = route.missing_left[t];
      steps_[t] = {codes + group * rows * kGroup + (f - layout.group_begin[group]),
                   route.set[t] >= 0 ? route.sets.data() + 8 * route.set[t] : nullptr,
                   route.left[t],
                   missing_left,
                   missing_left,
                   static_cast<std::int16_t>(route.bin[t] + missing_left)};
    }
  }

  // Moves the rows begin .. end to the ends of the route.
  template <class Word>
  void take(index_t begin, index_t end, Word* nodes) const {
    constexpr Word number = NodeWord<Word>::kNumber;
    const RouteStep* steps = steps_.data();
    const std::uint8_t* inner = inner_.data();
    for (std::uint8_t moving = any_; moving;) {
      moving = 0;
      for (index_t i = begin; i < end; ++i) {
        const Word word = nodes[i];
        const auto next = static_cast<Word>(steps[word & number].next(i));
        nodes[i] = static_cast<Word>(next | (word & NodeWord<Word>::kLeftOut));
        moving |= inner[next];
      }
    }
  }

 private:
  std::vector<RouteStep> steps_;
  std::vector<std::uint8_t> inner_;
  std::uint8_t any_ = 0;
};

template <class Word>
void start_nodes(Word* nodes, index_t rows, index_t first, double share, std::uint64_t seed) {
  std::fill_n(nodes, rows, Word{0});
  if (share >= 1) return;
  const Random random(seed, 0x5A3B);  // the same draw as LeafRows::start
  for (index_t i = 0; i < rows; ++i)
    if (!(random.uniform_at(first + i) < share)) nodes[i] = NodeWord<Word>::kLeftOut;
}

template <class Word>
Word last_node(const Word* nodes, index_t rows) {
  return largest(nodes, rows);
}

template <class Word>
void follow_route(const Bins& layout, const std::uint8_t* codes, index_t rows, const Nodes& route, Word* nodes) {
  const Steps steps(layout, codes, rows, route);
  const index_t chunks = (rows + kPlaced - 1) / kPlaced;
  parallel_for(chunks, [&](index_t c) { steps.take(c * kPlaced, std::min(rows, (c + 1) * kPlaced), nodes); });
}

RouteSums::RouteSums(const Bins& layout, Rounding form, std::vector<std::int32_t> wanted,
                     std::vector<std::uint8_t> full)
    : layout_(layout), form_(form), wanted_(std::move(wanted)), fine_(wanted_.size()), totals_(wanted_.size()) {
  for (std::size_t k = 0; k < wanted_.size(); ++k)
    if (full[k]) counted_.push_back(k);
  wide_.resize(counted_.size() * static_cast<std::size_t>(node_cells()));
  if (form_ != Rounding::exact) narrow_.resize(wide_.size() / 3);
  held_.resize(counted_.size());
}

std::int64_t* RouteSums::narrow(std::size_t k, index_t group) {
  return narrow_.data() + (static_cast<index_t>(k * layout_.slots.size()) + layout_.group_begin[group]) * kBins;
}

Cell* RouteSums::wide(std::size_t k, index_t group) {
  const index_t slot = static_cast<index_t>(k * layout_.slots.size()) + layout_.group_begin[group];
  return reinterpret_cast<Cell*>(wide_.data() + slot * kBins * 3);
}

template <class Word>
void RouteSums::add(const std::uint8_t* codes, index_t rows, const Rounded& gradients, const Nodes& route,
                    Word* nodes) {
  const auto n = static_cast<std::uint32_t>(wanted_.size());
  std::vector<std::uint32_t> rank(static_cast<std::size_t>(route.size()), n);
  for (std::uint32_t k = 0; k < n; ++k) rank[wanted_[k]] = k;
  const index_t chunks = (rows + kPlaced - 1) / kPlaced;
  rows_.resize(static_cast<std::size_t>(chunks * kPlaced + kSpare));
  std::vector<std::uint32_t> begins(static_cast<std::size_t>(chunks) * (n + 1));
  std::vector<Cell> totals(static_cast<std::size_t>(chunks) * n);
  std::vector<Fine> fine(totals.size());
  const auto which = [&](index_t c, std::size_t k) { return rows_.data() + c * kPlaced + begins[c * (n + 1) + k]; };
  const auto size = [&](index_t c, std::size_t k) {
    return index_t{begins[c * (n + 1) + k + 1] - begins[c * (n + 1) + k]};
  };
  const Steps steps(layout_, codes, rows, route);
  parallel_for(chunks, [&](index_t c) {
    const index_t begin = c * kPlaced, end = std::min(rows, begin + kPlaced);
    steps.take(begin, end, nodes);
    sort_rows(nodes, begin, end, rank.data(), n, rows_.data() + begin, begins.data() + c * (n + 1));
    for (std::uint32_t k = 0; k < n; ++k) {
      totals[c * n + k] = add_up(gradients, which(c, k), size(c, k));
      if (form_ != Rounding::packed) continue;
      Fine& more = fine[c * n + k];
      fine_sums(gradients.words, which(c, k), size(c, k), more.g, more.h);
    }
  });
  std::vector<index_t> sizes(n);
  for (index_t c = 0; c < chunks; ++c)
    for (std::uint32_t k = 0; k < n; ++k) {
      totals_[k] += totals[c * n + k];
      fine_[k].g += fine[c * n + k].g, fine_[k].h += fine[c * n + k].h;
      sizes[k] += size(c, k);
    }
  parallel_for(static_cast<index_t>(counted_.size()) * layout_.groups, [&](index_t task) {
    const auto k = static_cast<std::size_t>(task / layout_.groups);
    const index_t group = task % layout_.groups;
    std::int64_t* sums = form_ == Rounding::exact ? nullptr : narrow(k, group);
    const auto add_some = [&](const std::uint32_t* some, index_t m, index_t held) {
      add_codes(layout_, group, codes + group * rows * kGroup, gradients, some, m, held, sums, wide(k, group));
      return held_after(held, m);
    };
    if (sizes[counted_[k]] == rows) {
      add_some(nullptr, rows, held_[k]);
      return;
    }
    index_t held = held_[k];
    for (index_t c = 0; c < chunks; ++c) held = add_some(which(c, counted_[k]), size(c, counted_[k]), held);
  });
  for (std::size_t k = 0; k < counted_.size(); ++k) held_[k] = held_after(held_[k], sizes[counted_[k]]);
}

const std::vector<std::int64_t>& RouteSums::cells() {
  if (form_ != Rounding::exact)
    parallel_for(static_cast<index_t>(counted_.size()) * layout_.groups, [&](index_t task) {
      const auto k = static_cast<std::size_t>(task / layout_.groups);
      const index_t group = task % layout_.groups;
      widen_narrow(layout_, group, form_, narrow(k, group), wide(k, group));
    });
  std::fill(held_.begin(), held_.end(), 0);
  return wide_;
}

template void start_nodes(std::uint16_t*, index_t, index_t, double, std::uint64_t);
template void start_nodes(std::uint32_t*, index_t, index_t, double, std::uint64_t);
template std::uint16_t last_node(const std::uint16_t*, index_t);
template std::uint32_t last_node(const std::uint32_t*, index_t);
template void follow_route(const Bins&, const std::uint8_t*, index_t, const Nodes&, std::uint16_t*);
template void follow_route(const Bins&, const std::uint8_t*, index_t, const Nodes&, std::uint32_t*);
template void RouteSums::add(const std::uint8_t*, index_t, const Rounded&, const Nodes&, std::uint16_t*);
template void RouteSums::add(const std::uint8_t*, index_t, const Rounded&, const Nodes&, std::uint32_t*);

}  // namespace hinge::trees
