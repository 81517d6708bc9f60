#include "sequence/chain_pass.hpp"

#include <algorithm>
#include <type_traits>

#include "core/pool.hpp"
#include "sequence/chain_kernels.hpp"

namespace hinge {

using namespace chain;

namespace {

template <class To>
void convert(const Table& from, std::vector<To, AlignedAllocator<To>>& to) {
  to.resize(from.size());
  std::transform(from.begin(), from.end(), to.begin(), [](double value) { return static_cast<To>(value); });
}

}  // namespace

template <class Real>
ChainPass<Real>::ChainPass(const LabelledChains& data, const Layout& layout, const ChainPlan& plan)
    : data_(data),
      layout_(layout),
      plan_(plan),
      plain_(!data.x.parent && layout.plain()),
      width_(padded(layout.labels)),
      dense_(plan.dense.size() * width_, Real(0)),
      thin_(plan.thin.size()),
      parts_(plan.parts.size() - 1) {
  if constexpr (!std::is_same_v<Real, double>) {
    row_value_.assign(plan.row_value.begin(), plan.row_value.end());
    entry_value_.assign(plan.entry_value.begin(), plan.entry_value.end());
    thin_value_.assign(plan.thin_value.begin(), plan.thin_value.end());
  }
}

template <class Real>
const Real* ChainPass<Real>::values(const std::vector<Real>& own, const std::vector<double>& planned) const {
  if (!data_.x.value) return nullptr;
  if constexpr (std::is_same_v<Real, double>) {
    return planned.data();
  } else {
    return own.data();
  }
}

template <class Real>
void ChainPass<Real>::load(const double* w, const Potentials& p) {
  const index_t rows = static_cast<index_t>(plan_.dense.size()), pieces = parts_for(rows, 2048);
  parallel_for(pieces, [&](index_t piece) {
    for (index_t r = range_begin(rows, pieces, piece); r < range_begin(rows, pieces, piece + 1); ++r) {
      const index_t a = plan_.dense[r];
      Real* out = dense_.data() + r * width_;
      if (layout_.begin.empty()) {
        for (index_t j = 0; j < layout_.labels; ++j) out[j] = static_cast<Real>(w[a * layout_.labels + j]);
      } else {
        for (index_t k = layout_.begin[a]; k < layout_.begin[a + 1]; ++k)
          out[layout_.label[k]] = static_cast<Real>(w[k]);
      }
    }
  });
  const index_t thin = static_cast<index_t>(thin_.size()), shares = parts_for(thin, 32768);
  parallel_for(shares, [&](index_t share) {
    for (index_t k = range_begin(thin, shares, share); k < range_begin(thin, shares, share + 1); ++k)
      thin_[k] = static_cast<Real>(w[plan_.thin[k]]);
  });
  convert(p.pad, pad_);
  convert(p.first, first_);
  convert(p.last, last_);
  convert(p.power, power_);
  convert(p.power_t, power_t_);
}

// Scores of the tokens from `begin` on.
template <int V, class Real>
HINGE_HOT void token_scores(const ChainPass<Real>& pass, index_t begin, index_t length, Real* __restrict rows) {
  const ChainPlan& plan = pass.plan_;
  const index_t w = wide<V>(pass.width_), all = static_cast<index_t>(plan.row.size());
  const Real* row_value = pass.values(pass.row_value_, plan.row_value);
  const Real* thin_value = pass.values(pass.thin_value_, plan.thin_value);
  for (index_t t = 0; t < length; ++t) {
    const index_t at = plan.row_begin[begin + t], n = plan.row_begin[begin + t + 1] - at;
    Real* row = rows + t * w;
    combine<V, Real>(pass.pad_.data(), row_value ? row_value + at : nullptr, plan.row.data() + at, n,
                     pass.dense_.data(), w, row, all - at);
    for (index_t e = plan.thin_begin[begin + t]; e < plan.thin_begin[begin + t + 1]; ++e) {
      const ChainPlan::Thin entry = plan.thin_entry[e];
      row[entry.label] += pass.thin_[entry.weight] * (thin_value ? thin_value[e] : Real(1));
    }
  }
}

// The chains of one block: their loss, expected label pairs, and rows of c_i (marginals - observed).
template <class Real>
HINGE_HOT void chain_rows(ChainPass<Real>& pass, const Potentials& p, index_t part_index, index_t block) {
  const ChainPlan& plan = pass.plan_;
  const Tokens& x = pass.data_.x;
  auto& part = pass.parts_[part_index];
  const index_t w = pass.width_, origin = x.start[plan.blocks[block]];
  const Steps<Real> steps{p.labels, w, p.shift, pass.power_.data(), pass.power_t_.data()};
  Real* expected = part.outer.data();
  std::fill(expected, expected + w * w, Real(0));
  for (index_t i = plan.blocks[block]; i < plan.blocks[block + 1]; ++i) {
    const index_t begin = x.start[i], length = x.length(i);
    if (length == 0) continue;
    Real* rows = part.rows.data() + (begin - origin) * w;
    const std::int32_t* y = pass.data_.y + begin;
    pass.scores(begin, length, rows);
    for (index_t j = 0; j < w; ++j) rows[j] += pass.first_[j];
    for (index_t j = 0; j < w; ++j) rows[(length - 1) * w + j] += pass.last_[j];
    double observed = 0;
    for (index_t t = 0; t < length; ++t) {
      observed += static_cast<double>(rows[t * w + y[t]]);
      if (t > 0) observed += p.pair[y[t - 1] * w + y[t]];
    }
    const Real c = static_cast<Real>(pass.data_.weight[i]);
    Real* gamma = part.gamma.data();
    double log_z = forward(steps, length, rows, part.e.data(), part.alpha.data());
    if (log_z == log_z && backward(steps, length, part.e.data(), part.alpha.data(), gamma, c)) {
      outer<Real>(part.alpha.data(), part.e.data() + w, length - 1, w, expected);
    } else {
      part.scores.assign(rows, rows + length * w);
      log_z = tree_posterior(p, Tree{length, nullptr, nullptr}, part.scores.data(), pass.data_.weight[i],
                             part.pairs.data(), nullptr, part.scratch);
      std::copy(part.scores.begin(), part.scores.end(), gamma);
    }
    part.value += pass.data_.weight[i] * (log_z - observed);
    for (index_t t = 0; t < length; ++t) gamma[t * w + y[t]] -= 1;
    for (index_t k = 0; k < length * w; ++k) rows[k] = c * gamma[k];
  }
  for (index_t k = 0; k < p.labels * w; ++k) part.pairs[k] += static_cast<double>(expected[k]) * p.power[k];
}

// Adds the rows of a block to the gradient.
template <int V, class Real>
HINGE_HOT void chain_sums(ChainPass<Real>& pass, index_t part_index, index_t block) {
  const ChainPlan& plan = pass.plan_;
  auto& part = pass.parts_[part_index];
  const index_t w = wide<V>(pass.width_);
  const index_t first = pass.data_.x.start[plan.blocks[block]], last = pass.data_.x.start[plan.blocks[block + 1]];
  const Real* entry_value = pass.values(pass.entry_value_, plan.entry_value);
  const Real* thin_value = pass.values(pass.thin_value_, plan.thin_value);
  for (index_t t = first; t < last; ++t) {
    const Real* row = part.rows.data() + (t - first) * w;
    for (index_t e = plan.thin_begin[t]; e < plan.thin_begin[t + 1]; ++e) {
      const ChainPlan::Thin entry = plan.thin_entry[e];
      part.thin[entry.weight] += row[entry.label] * (thin_value ? thin_value[e] : Real(1));
    }
  }
  alignas(64) Real fixed[V ? 8 * V : 1];
  typename ChainPass<Real>::Numbers heap(V ? 0 : w);
  Real* sum = V ? fixed : heap.data();
  for (index_t e = plan.block_entry[block]; e < plan.block_entry[block + 1]; ++e) {
    const index_t at = plan.entry_begin[e], n = plan.entry_begin[e + 1] - at;
    Real* out = part.dense.data() + plan.entry_row[e] * w;
    combine<V, Real>(out, entry_value ? entry_value + at : nullptr, plan.entry_token.data() + at, n, part.rows.data(),
                     w, sum);
    for (index_t j = 0; j < w; ++j) out[j] = sum[j];
  }
}

template <class Real>
void ChainPass<Real>::scores(index_t begin, index_t length, Real* rows) const {
  HINGE_BY_WIDTH(width_, token_scores, *this, begin, length, rows)
}

template <class Real>
void ChainPass<Real>::sums(index_t part, index_t block) {
  HINGE_BY_WIDTH(width_, chain_sums, *this, part, block)
}

// As chain_rows, for trees, observed label pairs and label triples.
template <class Real>
void ChainPass<Real>::general_rows(const Potentials& p, Part& part, index_t block) {
  const Tokens& x = data_.x;
  SequenceReader reader(x, p);
  double* triples = p.second() ? part.triples.data() : nullptr;
  for (index_t i = plan_.blocks[block]; i < plan_.blocks[block + 1]; ++i) {
    const index_t begin = x.start[i], length = x.length(i);
    if (length == 0) continue;
    const std::int32_t* y = data_.y + begin;
    double* s = reader.read(i);
    const double observed = reader.value(s, y), c = data_.weight[i];
    part.value += c * (reader.posterior(s, c, part.pairs.data(), p.crossed(), triples) - observed);
    if (p.crossed()) reader.each_cross([&](index_t k, double expected) { part.cross[k] += c * expected; });
    for (index_t t = 0; t < length; ++t) s[t * width_ + y[t]] -= 1;
    Real* rows = part.rows.data() + (begin - x.start[plan_.blocks[block]]) * width_;
    for (index_t k = 0; k < length * width_; ++k) rows[k] = static_cast<Real>(c * s[k]);
  }
}

template <class Real>
double ChainPass<Real>::loss(const double* w, const Potentials& p, double* g, double* pairs, double* cross,
                             double* triples) {
  load(w, p);
  const Tokens& x = data_.x;
  const auto rows = may_throw(&chain_rows<Real>);
  parallel_for(static_cast<index_t>(parts_.size()), [&](index_t at) {
    Part& part = parts_[at];
    part.dense.assign(dense_.size(), Real(0));
    part.thin.assign(thin_.size(), Real(0));
    part.pairs.assign(layout_.labels * width_, 0.0);
    part.cross.assign(layout_.crossed(), 0.0);
    part.triples.assign(p.triple.size(), 0.0);
    part.outer.resize(width_ * width_);
    part.value = 0;
    for (index_t b = plan_.parts[at]; b < plan_.parts[at + 1]; ++b) {
      const index_t first = plan_.blocks[b], last = plan_.blocks[b + 1];
      index_t longest = 0;
      for (index_t i = first; i < last; ++i) longest = std::max(longest, x.length(i));
      const auto enough = [](Numbers& numbers, index_t n) {
        if (static_cast<index_t>(numbers.size()) < n) numbers.resize(n);
      };
      enough(part.rows, (x.start[last] - x.start[first]) * width_);
      for (Numbers* table : {&part.e, &part.alpha, &part.gamma}) enough(*table, longest * width_);
      if (plain_) {
        rows(*this, p, at, b);
      } else {
        general_rows(p, part, b);
      }
      sums(at, b);
    }
  });
  gather(g, pairs, cross, triples);
  double sum = 0;
  for (const Part& part : parts_) sum += part.value;
  return sum;
}

template <class Real>
void ChainPass<Real>::gather(double* g, double* pairs, double* cross, double* triples) const {
  const index_t rows = static_cast<index_t>(plan_.dense.size()), pieces = parts_for(rows, 1024);
  parallel_for(pieces, [&](index_t piece) {
    Table sum(width_);
    for (index_t r = range_begin(rows, pieces, piece); r < range_begin(rows, pieces, piece + 1); ++r) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (const Part& part : parts_)
        for (index_t j = 0; j < width_; ++j) sum[j] += static_cast<double>(part.dense[r * width_ + j]);
      const index_t a = plan_.dense[r];
      if (layout_.begin.empty()) {
        for (index_t j = 0; j < layout_.labels; ++j) g[a * layout_.labels + j] = sum[j];
      } else {
        for (index_t k = layout_.begin[a]; k < layout_.begin[a + 1]; ++k) g[k] = sum[layout_.label[k]];
      }
    }
  });
  const index_t thin = static_cast<index_t>(thin_.size()), shares = parts_for(thin, 16384);
  parallel_for(shares, [&](index_t share) {
    for (index_t k = range_begin(thin, shares, share); k < range_begin(thin, shares, share + 1); ++k) {
      double sum = 0;
      for (const Part& part : parts_) sum += static_cast<double>(part.thin[k]);
      g[plan_.thin[k]] = sum;
    }
  });
  for (const Part& part : parts_) {
    for (std::size_t k = 0; k < part.pairs.size(); ++k) pairs[k] += part.pairs[k];
    for (std::size_t k = 0; k < part.cross.size(); ++k) cross[k] += part.cross[k];
    for (std::size_t k = 0; k < part.triples.size(); ++k) triples[k] += part.triples[k];
  }
}

template class ChainPass<float>;
template class ChainPass<double>;

}  // namespace hinge
