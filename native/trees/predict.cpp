#include "trees/predict.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/pool.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kRows =
    Levels::kRows;  // rows of a block: their masks and a column of values stay in the first-level cache

template <class T, class Mask>
HINGE_HOT void clear_where_right(const T* __restrict x, T threshold, bool missing_left, Mask keep, Mask* __restrict m) {
  if (missing_left) {
    for (index_t i = 0; i < kRows; ++i) m[i] &= x[i] > threshold ? keep : ~Mask(0);
  } else {
    for (index_t i = 0; i < kRows; ++i) m[i] &= x[i] <= threshold ? ~Mask(0) : keep;
  }
}

template <class T>
HINGE_HOT bool any_missing(const T* x, index_t n) {
  int missing = 0;
  for (index_t i = 0; i < n; ++i) missing |= x[i] != x[i];
  return missing != 0;
}

template <class T>
HINGE_INLINE bool in_set(const std::uint32_t* set, T x, bool missing_left) {
  if (!(x >= 0 && x < 255)) return missing_left;
  return contains(set, static_cast<unsigned>(x));
}

}  // namespace

Predictor::Predictor(Ensemble ensemble) : e_(std::move(ensemble)) {
  for (const std::int32_t f : e_.feature) largest_feature_ = std::max<index_t>(largest_feature_, f);
  std::int64_t most = 0;
  for (index_t t = 0; t < trees(); ++t) most = std::max(most, (e_.start[t + 1] - e_.start[t] + 1) / 2);
  mask_bits_ = !e_.additive ? 0 : most <= 32 ? 32 : most <= 64 ? 64 : 0;
  make_steps();
  if (mask_bits_ == 0) {  // walking needs nothing else
    e_.feature = {}, e_.left = {}, e_.set = {}, e_.threshold = {}, e_.missing_left = {};
    return;
  }
  by_level_ = levels_.build(e_);
  threshold32_.resize(e_.threshold.size());
  std::transform(e_.threshold.begin(), e_.threshold.end(), threshold32_.begin(), round_down<float>);
  // Leaves are numbered from left to right; the mask of a split clears its left subtree.
  split_start_.push_back(0);
  leaf_start_.push_back(0);
  for (index_t t = 0; t < trees(); ++t) {
    const std::int64_t base = e_.start[t];
    int leaves = 0;
    const auto visit = [&](auto&& self, std::int32_t node) -> void {
      if (e_.feature[base + node] < 0) {
        leaf_value_.push_back(e_.value[base + node]);
        ++leaves;
        return;
      }
      const std::size_t slot = split_node_.size();
      split_node_.push_back(static_cast<std::int32_t>(base + node));
      split_mask_.push_back(0);
      const int before = leaves;
      self(self, e_.left[base + node]);
      const std::uint64_t upto = leaves >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << leaves) - 1;
      split_mask_[slot] = ~(upto & ~((std::uint64_t{1} << before) - 1));
      self(self, e_.left[base + node] + 1);
    };
    visit(visit, 0);
    split_start_.push_back(static_cast<std::int64_t>(split_node_.size()));
    leaf_start_.push_back(static_cast<std::int64_t>(leaf_value_.size()));
  }
}

void Predictor::make_steps() {
  steps_.resize(e_.feature.size());
  for (index_t t = 0; t < trees(); ++t)
    for (std::int64_t at = e_.start[t]; at < e_.start[t + 1]; ++at) {
      Step& step = steps_[at];
      if (e_.feature[at] < 0) {
        step = {std::numeric_limits<double>::infinity(), 0, 0, 1, static_cast<std::int32_t>(at - e_.start[t])};
        continue;
      }
      const bool categorical = e_.set[at] >= 0;
      step = {categorical ? static_cast<double>(e_.set[at]) : e_.threshold[at],
              static_cast<std::uint32_t>(e_.feature[at]) & 0x3fffffffu, categorical, e_.missing_left[at] != 0,
              e_.left[at]};
    }
}

template <class T>
const T* Predictor::values_of() const {
  if constexpr (sizeof(T) == 4)
    return threshold32_.data();
  else
    return e_.threshold.data();
}

template <class T, class Mask>
void Predictor::add_masked(const Table<T>& x, index_t first, index_t last, double* out) const {
  const index_t blocks = (x.rows + kRows - 1) / kRows, parts = std::min<index_t>(blocks, 256);
  const index_t k = e_.outputs;
  const T* thresholds = values_of<T>();
  parallel_for(parts, [&](index_t part) {
    std::vector<T> columns(x.cols * kRows, T(0));
    std::vector<double> sums(k * kRows);
    alignas(64) Mask m[kRows];
    for (index_t block = range_begin(blocks, parts, part); block < range_begin(blocks, parts, part + 1); ++block) {
      const index_t begin = block * kRows, size = std::min(kRows, x.rows - begin);
      for (index_t i = 0; i < size; ++i)
        for (index_t j = 0; j < x.cols; ++j) columns[j * kRows + i] = x.at(begin + i, j);
      std::fill(sums.begin(), sums.end(), 0.0);
      const bool by_level = by_level_ && !any_missing(columns.data(), x.cols * kRows);
      for (index_t t = first; t < last; ++t) {
        if (by_level) {
          levels_.add(t, columns.data(), sums.data() + (t % k) * kRows);
          continue;
        }
        std::fill_n(m, kRows, ~Mask(0));
        for (std::int64_t s = split_start_[t]; s < split_start_[t + 1]; ++s) {
          const std::int32_t node = split_node_[s];
          const T* column = columns.data() + e_.feature[node] * kRows;
          const auto keep = static_cast<Mask>(split_mask_[s]);
          if (e_.set[node] < 0) {
            clear_where_right(column, thresholds[node], e_.missing_left[node] != 0, keep, m);
          } else {
            const std::uint32_t* set = e_.sets.data() + 8 * e_.set[node];
            for (index_t i = 0; i < kRows; ++i) m[i] &= in_set(set, column[i], e_.missing_left[node]) ? ~Mask(0) : keep;
          }
        }
        const double* values = leaf_value_.data() + leaf_start_[t];
        double* sum = sums.data() + (t % k) * kRows;
        for (index_t i = 0; i < kRows; ++i) sum[i] += values[std::countr_zero(m[i])];
      }
      for (index_t i = 0; i < size; ++i)
        for (index_t c = 0; c < k; ++c) out[(begin + i) * k + c] += sums[c * kRows + i];
    }
  });
}

namespace {

constexpr index_t kTogether = 8;

// Large trees do not stay in the cache between two parts of the rows: there are few parts, but enough for the threads
// (the sum of a row does not depend on them).
index_t walking_parts(index_t rows) {
  return std::max(parts_for(rows, 8192, 64), std::min(parts_for(rows, 256, 64), static_cast<index_t>(num_threads())));
}

// The leaf nodes of `count` <= kTogether rows in a tree.
template <class T, class Row>
HINGE_INLINE void walk(const Step* steps, const std::uint32_t* sets, const Table<T>& x, const Row& row, index_t count,
                       std::int32_t* node) {
  for (index_t r = 0; r < count; ++r) node[r] = 0;
  if (x.cols == 0) return;  // no split uses a column: every tree is its root
  for (bool moving = true; moving;) {
    moving = false;
    for (index_t r = 0; r < count; ++r) {
      const Step step = steps[node[r]];
      const T v = x.at(row(r), step.feature);
      bool left = (static_cast<double>(v) <= step.threshold) | ((v != v) & step.missing_left);
      if (step.categorical) left = in_set(sets + 8 * static_cast<index_t>(step.threshold), v, step.missing_left);
      const std::int32_t next = step.left + !left;
      moving |= next != node[r];
      node[r] = next;
    }
  }
}

}  // namespace

template <class T>
void Predictor::add_walked(const Table<T>& x, index_t first, index_t last, double* out) const {
  const index_t k = e_.outputs;
  const index_t parts = walking_parts(x.rows);
  parallel_for(parts, [&](index_t part) {
    const index_t begin = range_begin(x.rows, parts, part), end = range_begin(x.rows, parts, part + 1);
    std::int32_t node[kTogether];
    for (index_t t = first; t < last; ++t)
      for (index_t i = begin; i < end; i += kTogether) {
        const index_t count = std::min(kTogether, end - i);
        walk(steps_.data() + e_.start[t], e_.sets.data(), x, [&](index_t r) { return i + r; }, count, node);
        for (index_t r = 0; r < count; ++r) {
          if (e_.additive)
            out[(i + r) * k + t % k] += e_.value[e_.start[t] + node[r]];
          else
            for (index_t c = 0; c < k; ++c) out[(i + r) * k + c] += e_.value[(e_.start[t] + node[r]) * k + c];
        }
      }
  });
}

template <class T>
void Predictor::add(const Table<T>& x, index_t first, index_t last, double* out) const {
  if (mask_bits_ == 32) return add_masked<T, std::uint32_t>(x, first, last, out);
  if (mask_bits_ == 64) return add_masked<T, std::uint64_t>(x, first, last, out);
  add_walked(x, first, last, out);
}

template <class T>
void Predictor::add_out_of_bag(const Table<T>& x, const std::uint8_t* in_bag, double* out, double* count) const {
  const index_t k = e_.outputs;
  const index_t parts = walking_parts(x.rows);
  parallel_for(parts, [&](index_t part) {
    const index_t end = range_begin(x.rows, parts, part + 1);
    std::int32_t node[kTogether];
    index_t row[kTogether];
    for (index_t t = 0; t < trees(); ++t)
      for (index_t i = range_begin(x.rows, parts, part); i < end;) {
        index_t size = 0;
        for (; i < end && size < kTogether; ++i)
          if (!in_bag[t * x.rows + i]) row[size++] = i;
        walk(steps_.data() + e_.start[t], e_.sets.data(), x, [&](index_t r) { return row[r]; }, size, node);
        for (index_t r = 0; r < size; ++r) {
          count[row[r]] += 1;
          for (index_t c = 0; c < k; ++c) out[row[r] * k + c] += e_.value[(e_.start[t] + node[r]) * k + c];
        }
      }
  });
}

template <class T>
void Predictor::leaves(const Table<T>& x, std::int32_t* out) const {
  const index_t parts = walking_parts(x.rows);
  parallel_for(parts, [&](index_t part) {
    const index_t begin = range_begin(x.rows, parts, part), end = range_begin(x.rows, parts, part + 1);
    std::int32_t node[kTogether];
    for (index_t t = 0; t < trees(); ++t)
      for (index_t i = begin; i < end; i += kTogether) {
        const index_t count = std::min(kTogether, end - i);
        walk(steps_.data() + e_.start[t], e_.sets.data(), x, [&](index_t r) { return i + r; }, count, node);
        for (index_t r = 0; r < count; ++r) out[(i + r) * trees() + t] = node[r];
      }
  });
}

template void Predictor::add(const Table<float>&, index_t, index_t, double*) const;
template void Predictor::add(const Table<double>&, index_t, index_t, double*) const;
template void Predictor::add_out_of_bag(const Table<float>&, const std::uint8_t*, double*, double*) const;
template void Predictor::add_out_of_bag(const Table<double>&, const std::uint8_t*, double*, double*) const;
template void Predictor::leaves(const Table<float>&, std::int32_t*) const;
template void Predictor::leaves(const Table<double>&, std::int32_t*) const;

}  // namespace hinge::trees
