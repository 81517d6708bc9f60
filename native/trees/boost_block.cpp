#include "trees/boost_block.hpp"

#include <algorithm>
#include <utility>

#include "core/pool.hpp"
#include "core/random.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kPlaced = 8192;  // rows placed and sorted together
constexpr index_t kSpare = 64;     // padding after the row numbers, for prefetches past the end

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

std::vector<RouteStep> steps_of(const Bins& layout, const std::uint8_t* codes, index_t rows, const Nodes& route) {
  std::vector<RouteStep> steps(route.size());
  for (std::int32_t t = 0; t < route.size(); ++t) {
    if (route.left[t] < 0) {
      steps[t] = {codes, nullptr, t, 0, 0, 255};
      continue;
    }
    const index_t f = route.feature[t];
    index_t group = 0;
    while (layout.group_begin[group + 1] <= f) ++group;  // the slots of a layout are its features
    const std::uint8_t missing_left = route.missing_left[t];
    steps[t] = {codes + group * rows * kGroup + (f - layout.group_begin[group]),
                route.set[t] >= 0 ? route.sets.data() + 8 * route.set[t] : nullptr,
                route.left[t],
                missing_left,
                missing_left,
                static_cast<std::int16_t>(route.bin[t] + missing_left)};
  }
  return steps;
}

template <class Word>
void take_steps(const std::vector<RouteStep>& steps, const std::vector<std::uint8_t>& inner, index_t begin, index_t end,
                Word* nodes) {
  constexpr Word number = NodeWord<Word>::kNumber;
  for (bool moving = true; moving;) {
    std::uint8_t any = 0;
    for (index_t i = begin; i < end; ++i) {
      const Word word = nodes[i];
      const auto next = static_cast<Word>(steps[word & number].next(i));
      nodes[i] = static_cast<Word>(next | (word & NodeWord<Word>::kLeftOut));
      any |= inner[next];
    }
    moving = any;
  }
}

}  // namespace

template <class Word>
void start_nodes(Word* nodes, index_t rows, index_t first, double share, std::uint64_t seed) {
  std::fill_n(nodes, rows, Word{0});
  if (share >= 1) return;
  const Random random(seed, 0x5A3B);  // the same draw as LeafRows::start
  for (index_t i = 0; i < rows; ++i)
    if (!(random.uniform_at(first + i) < share)) nodes[i] = NodeWord<Word>::kLeftOut;
}

template <class Word>
void follow_route(const Bins& layout, const std::uint8_t* codes, index_t rows, const Nodes& route, Word* nodes) {
  const std::vector<RouteStep> steps = steps_of(layout, codes, rows, route);
  std::vector<std::uint8_t> inner(route.size());
  for (std::int32_t t = 0; t < route.size(); ++t) inner[t] = route.left[t] >= 0;
  if (std::none_of(inner.begin(), inner.end(), [](std::uint8_t i) { return i != 0; })) return;
  const index_t chunks = (rows + kPlaced - 1) / kPlaced;
  parallel_for(chunks,
               [&](index_t c) { take_steps(steps, inner, c * kPlaced, std::min(rows, (c + 1) * kPlaced), nodes); });
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
void RouteSums::add(const std::uint8_t* codes, index_t rows, const Rounded& gradients, const Word* nodes,
                    std::int32_t route_size) {
  // Sorts the rows by wanted node. Rows of other nodes, and rows not in the sample, come last.
  const std::size_t n = wanted_.size();
  std::vector<std::uint32_t> rank(static_cast<std::size_t>(route_size), static_cast<std::uint32_t>(n));
  for (std::size_t k = 0; k < n; ++k) rank[wanted_[k]] = static_cast<std::uint32_t>(k);
  const auto place = [&](index_t i) {
    const Word word = nodes[i];
    return word & NodeWord<Word>::kLeftOut ? static_cast<std::uint32_t>(n) : rank[word];
  };
  const index_t chunks = (rows + kPlaced - 1) / kPlaced;
  std::vector<index_t> at(static_cast<std::size_t>(chunks) * (n + 1));
  parallel_for(chunks, [&](index_t c) {
    index_t* mine = at.data() + c * static_cast<index_t>(n + 1);
    for (index_t i = c * kPlaced; i < std::min(rows, (c + 1) * kPlaced); ++i) ++mine[place(i)];
  });
  std::vector<index_t> begin(n + 2);
  index_t sum = 0;
  for (std::size_t k = 0; k <= n; ++k) {
    begin[k] = sum;
    for (index_t c = 0; c < chunks; ++c) sum += std::exchange(at[static_cast<std::size_t>(c) * (n + 1) + k], sum);
  }
  begin[n + 1] = sum;
  rows_.resize(static_cast<std::size_t>(rows + kSpare));
  parallel_for(chunks, [&](index_t c) {
    index_t* mine = at.data() + c * static_cast<index_t>(n + 1);
    for (index_t i = c * kPlaced; i < std::min(rows, (c + 1) * kPlaced); ++i)
      rows_[static_cast<std::size_t>(mine[place(i)]++)] = static_cast<std::uint32_t>(i);
  });
  const auto which = [&](std::size_t k) { return begin[k + 1] - begin[k] == rows ? nullptr : rows_.data() + begin[k]; };
  const auto size = [&](std::size_t k) { return begin[k + 1] - begin[k]; };
  parallel_for(static_cast<index_t>(n), [&](index_t task) {
    const auto k = static_cast<std::size_t>(task);
    totals_[k] += add_up(gradients, which(k), size(k));
    if (form_ != Rounding::packed) return;
    Fine more;
    fine_sums(gradients.words, rows_.data() + begin[k], size(k), more.g, more.h);
    fine_[k].g += more.g, fine_[k].h += more.h;
  });
  parallel_for(static_cast<index_t>(counted_.size()) * layout_.groups, [&](index_t task) {
    const auto k = static_cast<std::size_t>(task / layout_.groups);
    const index_t group = task % layout_.groups;
    add_codes(layout_, group, codes + group * rows * kGroup, gradients, which(counted_[k]), size(counted_[k]), held_[k],
              form_ == Rounding::exact ? nullptr : narrow(k, group), wide(k, group));
  });
  for (std::size_t k = 0; k < counted_.size(); ++k) {
    const index_t all = held_[k] + size(counted_[k]);
    held_[k] = all <= kBlock ? all : (all - 1) % kBlock + 1;
  }
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
template void follow_route(const Bins&, const std::uint8_t*, index_t, const Nodes&, std::uint16_t*);
template void follow_route(const Bins&, const std::uint8_t*, index_t, const Nodes&, std::uint32_t*);
template void RouteSums::add(const std::uint8_t*, index_t, const Rounded&, const std::uint16_t*, std::int32_t);
template void RouteSums::add(const std::uint8_t*, index_t, const Rounded&, const std::uint32_t*, std::int32_t);

}  // namespace hinge::trees
