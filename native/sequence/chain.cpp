#include "sequence/chain.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/pool.hpp"
#include "sequence/chain_kernels.hpp"
#include "sequence/chain_recursions.hpp"
#include "sequence/label_tree.hpp"

namespace hinge {
namespace {

using namespace chain;

constexpr double none = -std::numeric_limits<double>::infinity();

template <int V>
HINGE_HOT void scores_of(const Tokens& x, const Potentials& p, index_t sequence, double* scores) {
  const index_t w = wide<V>(p.width), first = x.start[sequence], last = x.start[sequence + 1];
  for (index_t t = first; t < last; ++t) {
    const index_t at = x.indptr[t], n = x.indptr[t + 1] - at;
    combine<V, double>(p.pad.data(), x.value ? x.value + at : nullptr, x.attribute + at, n, p.unary.data(), w,
                       scores + (t - first) * w, x.indptr[x.tokens] - at);
  }
  if (p.scale != 1)
    for (index_t k = 0; k < (last - first) * w; ++k) scores[k] *= p.scale;
  if (x.parent) return;
  double* end = scores + (last - first - 1) * w;
  for (index_t j = 0; j < w; ++j) scores[j] += p.first[j];
  for (index_t j = 0; j < w; ++j) end[j] += p.last[j];
}

template <int V>
HINGE_HOT double viterbi(const Potentials& p, index_t length, const double* scores, std::int32_t* best,
                         ChainScratch& scratch) {
  const index_t w = wide<V>(p.width);
  double* value = scratch.alpha.data();
  std::copy(scores, scores + w, value);
  for (index_t t = 1; t < length; ++t) {
    combine_max<V>(value + (t - 1) * w, p.labels, p.pair.data(), w, value + t * w);
    for (index_t j = 0; j < w; ++j) value[t * w + j] += scores[t * w + j];
  }
  const double* end = value + (length - 1) * w;
  index_t label = std::max_element(end, end + p.labels) - end;
  const double top = end[label];
  best[length - 1] = static_cast<std::int32_t>(label);
  for (index_t t = length - 1; t > 0; --t) {  // recomputing the predecessor is cheaper than storing all of them
    const double* a = value + (t - 1) * w;
    const double* b = p.pair_t.data() + label * w;
    double most = none;
    index_t previous = 0;
    for (index_t i = 0; i < p.labels; ++i)
      if (a[i] + b[i] > most) most = a[i] + b[i], previous = i;
    label = previous;
    best[t - 1] = static_cast<std::int32_t>(label);
  }
  return top;
}

}  // namespace

Potentials::Potentials(index_t attributes, index_t labels)
    : attributes(attributes),
      labels(labels),
      width(padded(labels)),
      pair(labels * width, 0.0),
      pair_t(labels * width, 0.0),
      power(labels * width, 0.0),
      power_t(labels * width, 0.0),
      pad(width, 0.0),
      first(width, 0.0),
      last(width, 0.0) {
  std::fill(pad.begin() + labels, pad.end(), none);
  refresh();
}

void Potentials::forbid(const std::uint8_t* pairs, const std::uint8_t* starts, const std::uint8_t* ends) {
  if (pairs) forbidden.assign(pairs, pairs + labels * labels);
  for (index_t j = 0; j < labels; ++j) {
    if (starts && starts[j]) first[j] = none;
    if (ends && ends[j]) last[j] = none;
  }
  refresh();
}

void Potentials::load(const Layout& layout, const double* w) {
  allocate();
  if (layout.begin.empty()) {
    parallel_for(parts_for(attributes, 4096), [&, parts = parts_for(attributes, 4096)](index_t part) {
      for (index_t a = range_begin(attributes, parts, part); a < range_begin(attributes, parts, part + 1); ++a)
        std::copy(w + a * labels, w + (a + 1) * labels, unary.data() + a * width);
    });
  } else {
    parallel_for(parts_for(attributes, 4096), [&, parts = parts_for(attributes, 4096)](index_t part) {
      for (index_t a = range_begin(attributes, parts, part); a < range_begin(attributes, parts, part + 1); ++a)
        for (index_t k = layout.begin[a]; k < layout.begin[a + 1]; ++k) unary[a * width + layout.label[k]] = w[k];
    });
  }
  const double* pairs = w + layout.unary();
  if (layout.crossed() > 0) {
    if (!crossed()) {
      cross_begin = layout.cross;
      for (std::int32_t cell : layout.cross_pair)
        cross_cell.push_back(static_cast<std::int32_t>(cell / labels * width + cell % labels));
    }
    cross.assign(pairs + layout.pair.size(), pairs + layout.pair.size() + layout.crossed());
  }
  load_pairs(layout, w);
  if (!layout.triple.empty()) load_triples(layout, w);
}

void Potentials::load_pairs(const Layout& layout, const double* w) {
  const double* pairs = w + layout.unary();
  for (std::size_t k = 0; k < layout.pair.size(); ++k)
    pair[layout.pair[k] / labels * width + layout.pair[k] % labels] = pairs[k];
  refresh();
}

void Potentials::load_triples(const Layout& layout, const double* w) {
  triple.resize(labels * labels * width, 0.0);
  const double* triples = w + layout.before_triples();
  for (std::size_t k = 0; k < layout.triple.size(); ++k) triple[triple_cell(layout.triple[k])] = triples[k];
  refresh_triples();
}

void Potentials::refresh_triples() {
  triple_power.assign(triple.size(), 0.0);
  triple_power_t.assign(triple.size(), 0.0);
  triple_shift = none;
  for (index_t row = 0; row < labels * labels; ++row)
    triple_shift =
        std::max(triple_shift, *std::max_element(triple.begin() + row * width, triple.begin() + row * width + labels));
  for (index_t i = 0; i < labels; ++i)
    for (index_t h = 0; h < labels; ++h)
      for (index_t j = 0; j < labels; ++j) {
        const double e = std::exp(triple[triple_cell(h, i, j)] - triple_shift);
        triple_power[triple_cell(h, i, j)] = e;
        triple_power_t[triple_cell(j, i, h)] = e;
      }
}

index_t Potentials::cross_at(index_t attribute, index_t previous, index_t next) const {
  const auto first = cross_cell.begin() + cross_begin[attribute],
             last = cross_cell.begin() + cross_begin[attribute + 1];
  const auto cell = static_cast<std::int32_t>(previous * width + next);
  const auto found = std::lower_bound(first, last, cell);
  return found != last && *found == cell ? found - cross_cell.begin() : -1;
}

void chain_tables(const Tokens& x, const Potentials& p, index_t sequence, double* tables) {
  for (index_t t = x.start[sequence]; t < x.start[sequence + 1]; ++t, tables += p.labels * p.width) {
    std::copy(p.pair.begin(), p.pair.end(), tables);
    for (index_t at = x.indptr[t]; at < x.indptr[t + 1]; ++at) {
      const index_t a = x.attribute[at];
      const double value = p.scale * (x.value ? x.value[at] : 1.0);
      for (index_t k = p.cross_begin[a]; k < p.cross_begin[a + 1]; ++k) tables[p.cross_cell[k]] += value * p.cross[k];
    }
  }
}

void Potentials::refresh() {
  if (!forbidden.empty())
    for (index_t i = 0; i < labels; ++i)
      for (index_t j = 0; j < labels; ++j)
        if (forbidden[i * labels + j]) pair[i * width + j] = none;
  shift = none;
  for (index_t i = 0; i < labels; ++i)
    for (index_t j = 0; j < labels; ++j) {
      pair_t[j * width + i] = pair[i * width + j];
      shift = std::max(shift, pair[i * width + j]);
    }
  if (shift == none) shift = 0;
  for (index_t i = 0; i < labels; ++i)
    for (index_t j = 0; j < labels; ++j) {
      const double e = std::exp(pair[i * width + j] - shift);
      power[i * width + j] = e;
      power_t[j * width + i] = e;
    }
}

void chain_scores(const Tokens& x, const Potentials& p, index_t sequence, double* scores) {
  HINGE_BY_WIDTH(p.width, scores_of, x, p, sequence, scores)
}

double chain_posterior(const Potentials& p, index_t length, double* scores, double weight, double* pairs,
                       ChainScratch& scratch) {
  const index_t w = p.width, n = length * w;
  grow(scratch.alpha, n);
  grow(scratch.beta, n + w * w);
  grow(scratch.buffer, n);
  double* alpha = scratch.alpha.data();
  double* gamma = scratch.beta.data();
  double* e = scratch.buffer.data();
  const Steps<double> steps{p.labels, w, p.shift, p.power.data(), p.power_t.data()};
  const double log_z = forward(steps, length, scores, e, alpha);
  if (!(log_z == log_z) || !backward(steps, length, e, alpha, gamma))
    return tree_posterior(p, Tree{length, nullptr, nullptr}, scores, weight, pairs, nullptr, scratch);
  if (pairs && length > 1) {
    double* A = gamma + n;
    std::fill(A, A + w * w, 0.0);
    outer(alpha, e + w, length - 1, w, A);
    for (index_t i = 0; i < p.labels * w; ++i) pairs[i] += weight * A[i] * p.power[i];
  }
  std::copy(gamma, gamma + n, scores);
  return log_z;
}

double chain_log_partition(const Potentials& p, index_t length, const double* scores, ChainScratch& scratch) {
  grow(scratch.alpha, length * p.width);
  grow(scratch.buffer, length * p.width);
  const Steps<double> steps{p.labels, p.width, p.shift, p.power.data(), p.power_t.data()};
  const double log_z = forward(steps, length, scores, scratch.buffer.data(), scratch.alpha.data());
  return log_z == log_z ? log_z : tree_log_partition(p, Tree{length, nullptr, nullptr}, scores, scratch);
}

double chain_viterbi(const Potentials& p, index_t length, const double* scores, std::int32_t* best,
                     ChainScratch& scratch) {
  grow(scratch.alpha, length * p.width);
  HINGE_BY_WIDTH(p.width, viterbi, p, length, scores, best, scratch)
}

std::vector<index_t> sequence_parts(const Tokens& x) {
  const index_t parts = parts_for(x.tokens, 1024, 64);
  std::vector<index_t> bounds(parts + 1, x.sequences);
  bounds[0] = 0;
  for (index_t part = 1; part < parts; ++part) {
    const index_t target = range_begin(x.tokens, parts, part);
    bounds[part] = std::lower_bound(x.start, x.start + x.sequences, target) - x.start;
  }
  return bounds;
}

}  // namespace hinge
