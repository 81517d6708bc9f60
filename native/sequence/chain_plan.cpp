#include "sequence/chain_plan.hpp"

#include <algorithm>

#include "core/pool.hpp"

namespace hinge {
namespace {

constexpr index_t block_bytes = index_t{384} << 10;  // of the rows of a block, a part of the second-level cache
constexpr index_t cross_bytes = index_t{256} << 20;  // of the sums of observed label pairs, for all parts

// Divides the sequences where the token count reaches multiples of `size`.
std::vector<index_t> cut(const Tokens& x, index_t size) {
  std::vector<index_t> bounds{0};
  for (index_t i = 1; i < x.sequences; ++i)
    if (x.start[i] / size != x.start[bounds.back()] / size) bounds.push_back(i);
  bounds.push_back(x.sequences);
  return bounds;
}

}  // namespace

ChainPlan::ChainPlan(const Tokens& x, const Layout& layout, index_t width)
    : blocks(cut(x, std::max<index_t>(64, block_bytes / (width * static_cast<index_t>(sizeof(float)))))) {
  sort_tokens(x, layout, width);
  sort_blocks(x);
  const index_t count = static_cast<index_t>(blocks.size()) - 1;
  const auto fitting = [](index_t most, index_t each) {
    return std::max<index_t>(2, most / std::max<index_t>(1, each));
  };
  index_t pieces = std::min(count, parts_for(x.tokens, 8192, 32));
  // Each part has its own gradient, which should be small compared with the part's scores.
  pieces = std::min(pieces, fitting(x.tokens * width, static_cast<index_t>(dense.size() * width + thin.size())));
  if (layout.crossed() > 0) pieces = std::min(pieces, fitting(cross_bytes, 8 * layout.crossed()));
  for (index_t part = 0; part <= pieces; ++part) parts.push_back(range_begin(count, pieces, part));
}

void ChainPlan::sort_tokens(const Tokens& x, const Layout& layout, index_t width) {
  std::vector<std::int32_t> row_of(x.attributes, -1);
  std::vector<index_t> thin_of(x.attributes, 0);
  for (index_t a = 0; a < x.attributes; ++a) {
    const index_t labels = layout.begin.empty() ? layout.labels : layout.begin[a + 1] - layout.begin[a];
    if (layout.begin.empty() || labels > width / 8) {  // then a row of vectors costs less than its entries one by one
      row_of[a] = static_cast<std::int32_t>(dense.size());
      dense.push_back(static_cast<std::int32_t>(a));
    } else {
      thin_of[a] = static_cast<index_t>(thin.size());
      for (index_t k = layout.begin[a]; k < layout.begin[a + 1]; ++k) thin.push_back(k);
    }
  }
  row_begin.assign(x.tokens + 1, 0);
  thin_begin.assign(x.tokens + 1, 0);
  for (index_t t = 0; t < x.tokens; ++t) {
    row_begin[t + 1] = row_begin[t];
    thin_begin[t + 1] = thin_begin[t];
    for (index_t k = x.indptr[t]; k < x.indptr[t + 1]; ++k) {
      const index_t a = x.attribute[k];
      if (row_of[a] >= 0) {
        ++row_begin[t + 1];
      } else {
        thin_begin[t + 1] += layout.begin[a + 1] - layout.begin[a];
      }
    }
  }
  if (static_cast<index_t>(dense.size()) == x.attributes) {
    row = {x.attribute, static_cast<std::size_t>(x.indptr[x.tokens])};
    if (x.value) row_value.assign(x.value, x.value + x.indptr[x.tokens]);
    return;
  }
  own_row.reserve(row_begin.back());
  thin_entry.reserve(thin_begin.back());
  for (index_t k = 0; k < x.indptr[x.tokens]; ++k) {
    const index_t a = x.attribute[k];
    if (row_of[a] >= 0) {
      own_row.push_back(row_of[a]);
      if (x.value) row_value.push_back(x.value[k]);
      continue;
    }
    for (index_t j = layout.begin[a]; j < layout.begin[a + 1]; ++j) {
      thin_entry.push_back({static_cast<std::int32_t>(thin_of[a] + j - layout.begin[a]), layout.label[j]});
      if (x.value) thin_value.push_back(x.value[k]);
    }
  }
  row = own_row;
}

void ChainPlan::sort_blocks(const Tokens& x) {
  std::vector<index_t> next(dense.size());
  block_entry.push_back(0);
  entry_begin.push_back(0);
  entry_token.resize(row.size());
  if (x.value) entry_value.resize(row.size());
  for (std::size_t b = 0; b + 1 < blocks.size(); ++b) {
    const index_t first = x.start[blocks[b]], last = x.start[blocks[b + 1]];
    std::fill(next.begin(), next.end(), 0);
    for (index_t k = row_begin[first]; k < row_begin[last]; ++k) ++next[row[k]];
    for (std::size_t r = 0; r < next.size(); ++r) {
      if (next[r] == 0) continue;
      entry_row.push_back(static_cast<std::int32_t>(r));
      entry_begin.push_back(entry_begin.back() + next[r]);
      next[r] = entry_begin.back() - next[r];
    }
    for (index_t t = first; t < last; ++t)
      for (index_t k = row_begin[t]; k < row_begin[t + 1]; ++k) {
        const index_t at = next[row[k]]++;
        entry_token[at] = static_cast<std::int32_t>(t - first);
        if (x.value) entry_value[at] = row_value[k];
      }
    block_entry.push_back(static_cast<index_t>(entry_row.size()));
  }
}

}  // namespace hinge
