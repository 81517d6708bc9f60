// Splits on a few features drawn at random, and access to a sparse table for them: where few features are tried, moving
// the entries of all features to the children would cost more than the search.
#include <algorithm>
#include <atomic>
#include <numeric>

#include "trees/grower.hpp"

namespace hinge::trees::cart {

// Subtrees grow concurrently and may read labels of rows of other subtrees, which never equal their own.
bool Grower::holds(const Node& node, std::uint32_t row) const {
  auto& label = const_cast<std::uint32_t&>(label_[row]);
  return std::atomic_ref(label).load(std::memory_order_relaxed) == node.label;
}

void Grower::label_children(const Node& node, Node& small, Node& large) {
  large.label = node.label;
  small.label = ++labels_;
  for (index_t i = small.begin; i < small.end; ++i)
    std::atomic_ref(label_[order_[i]]).store(small.label, std::memory_order_relaxed);
}

void Grower::list_cells() {
  label_.assign(nonzeros_->rows, kAbsent);
  for (const std::uint32_t row : order_) label_[row] = 0;
  std::fill(side_.begin(), side_.end(), 0);
  cells_begin_.assign(nonzeros_->rows + 1, 0);
  const auto each = [&](const auto& f) {
    for (index_t j = 0; j < cols_; ++j)
      for (index_t k = nonzeros_->begin[j]; k < nonzeros_->begin[j + 1]; ++k)
        if (const Sorted::Entry& e = nonzeros_->entries[k]; label_[e.row] != kAbsent) f(j, e);
  };
  each([&](index_t, const Sorted::Entry& e) { ++cells_begin_[e.row + 1]; });
  for (index_t i = 0; i < nonzeros_->rows; ++i) cells_begin_[i + 1] += cells_begin_[i];
  cells_of_rows_.resize(cells_begin_.back());
  std::vector<index_t> at(cells_begin_.begin(), cells_begin_.end() - 1);
  each([&](index_t j, const Sorted::Entry& e) {
    cells_of_rows_[at[e.row]++] = {static_cast<std::uint32_t>(j), e.code, e.row};
  });
}

void Grower::look_at_column(const Node& node, index_t j, Scratch& s) const {
  const index_t begin = nonzeros_->begin[j], n = nonzeros_->begin[j + 1] - begin;
  if (static_cast<index_t>(s.entries.size()) < n) s.entries.resize(n);
  index_t kept = 0;
  for (index_t k = 0; k < n; ++k) {
    const Sorted::Entry e = nonzeros_->entries[begin + k];
    s.entries[kept] = e;
    kept += holds(node, e.row);
  }
  s.first = s.entries.data(), s.last = s.first + kept;
}

const std::vector<Span>* Grower::spans_of(const Node& node, Scratch& s) const {
  if (!in_place_) return &node.spans;
  const auto cells = [&](std::uint32_t row) { return cells_begin_[row + 1] - cells_begin_[row]; };
  // Features are drawn until max_features of them have entries; only the columns drawn are read.
  const double all = static_cast<double>(cells_begin_.back()), rows = static_cast<double>(node.end - node.begin);
  const double some = all / static_cast<double>(size_) * rows;
  const double draws = o_.max_features * std::max(1.0, static_cast<double>(cols_) / (some + 1.0));
  if (some * kSorting > std::min(draws / static_cast<double>(cols_), 1.0) * all) return nullptr;
  s.cells_of_rows.clear();
  for (index_t i = node.begin; i < node.end; ++i) {
    const auto first = cells_of_rows_.begin() + cells_begin_[order_[i]];
    s.cells_of_rows.insert(s.cells_of_rows.end(), first, first + cells(order_[i]));
  }
  std::sort(s.cells_of_rows.begin(), s.cells_of_rows.end());
  s.spans.clear(), s.entries.clear();
  for (const RowCell& cell : s.cells_of_rows) {
    const auto feature = static_cast<std::int32_t>(cell.feature);
    const auto at = static_cast<index_t>(s.entries.size());
    if (s.spans.empty() || s.spans.back().feature != feature) s.spans.push_back({feature, at, at});
    s.entries.push_back({cell.row, cell.code});
    ++s.spans.back().end;
  }
  return &s.spans;
}

void Grower::try_drawn(const Node& node, Scratch& s, Cut& best) const {
  std::vector<std::int32_t>& order = s.features;  // the identity before and after
  if (static_cast<index_t>(order.size()) != cols_) {
    order.resize(cols_);
    std::iota(order.begin(), order.end(), 0);
  }
  s.swaps.clear();
  const std::vector<Span>* spans = nonzeros_ ? spans_of(node, s) : nullptr;
  const Sorted::Entry* entries = in_place_ ? s.entries.data() : entries_.data();
  index_t left = spans ? static_cast<index_t>(spans->size()) : cols_;  // features with entries not drawn yet
  if (spans) {
    s.place.resize(cols_, -1);
    for (index_t k = 0; k < left; ++k) s.place[(*spans)[k].feature] = static_cast<std::int32_t>(k);
  }
  Random random(seed_ ^ mix64(node.key), 0);
  int tried = 0;
  for (index_t k = 0; left > 0 && tried < o_.max_features; ++k) {
    s.swaps.push_back(k + static_cast<index_t>(random.below(cols_ - k)));
    std::swap(order[k], order[s.swaps.back()]);
    const std::int32_t j = order[k];
    if (spans) {
      if (s.place[j] < 0) continue;
      look_at(entries, (*spans)[s.place[j]], s);
    } else if (nonzeros_) {
      look_at_column(node, j, s);
    }
    --left;
    if (!nonzeros_ || s.first < s.last) tried += try_feature(node, j, s, best);
  }
  if (spans)
    for (const Span& span : *spans) s.place[span.feature] = -1;
  for (auto k = static_cast<index_t>(s.swaps.size()); k-- > 0;) std::swap(order[k], order[s.swaps[k]]);
}

}  // namespace hinge::trees::cart
