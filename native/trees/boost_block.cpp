#include "trees/boost_block.hpp"

#include <algorithm>

#include "core/pool.hpp"

namespace hinge::trees {

BoostBlock::BoostBlock(const Bins& layout, const std::uint8_t* codes, index_t rows, index_t first,
                       std::vector<double> y, std::vector<double> weight, index_t outputs, bool exact, bool frequency)
    : bins_(with_codes(layout, codes, rows)),
      first_(first),
      outputs_(outputs),
      y_(std::move(y)),
      weight_(std::move(weight)),
      scores_(rows * outputs, 0.0),
      gradients_(scored(), exact, frequency),
      placed_(outputs) {}

Scored BoostBlock::scored() const {
  return {y_.data(), scores_.data(), weight_.empty() ? nullptr : weight_.data(), bins_.rows, outputs_};
}

std::vector<Extent> BoostBlock::measure(const Differentiated& what) {
  is_rounded_ = false;
  return gradients_.measure(what, scored());
}

Rounded BoostBlock::rounded(const BlockRound& round, index_t output) {
  if (!is_rounded_ || round_ != round.seed) {
    gradients_.measure(round.what, scored());
    gradients_.round(round.what, scored(), round.extents, round.seed, first_);
    is_rounded_ = true, round_ = round.seed;
  }
  return gradients_.rounded(output);
}

// Sorts the rows by the nodes of the route, from where they were left.
const BoostBlock::Placed& BoostBlock::place(const BlockRound& round, index_t output, const Nodes& route) {
  Placed& p = placed_[output];
  if (p.begin.empty() || p.round != round.seed) {
    p.rows.start(rows(), round.rows, round.seed, first_);
    p.begin = {0}, p.end = {p.rows.used()}, p.split.clear(), p.round = round.seed;
  }
  const std::size_t nodes = route.feature.size();
  p.begin.resize(nodes), p.end.resize(nodes), p.split.resize(nodes);
  for (std::int32_t t = 0; t < route.size(); ++t) {  // children come after their parents
    const std::int32_t l = route.left[t];
    if (l < 0 || p.split[t]) continue;
    const index_t left = p.rows.split(bins_, route, t, p.begin[t], p.end[t]);
    p.begin[l] = p.begin[t], p.end[l] = p.begin[l + 1] = p.begin[t] + left, p.end[l + 1] = p.end[t];
    p.split[t] = 1;
  }
  return p;
}

void BoostBlock::count(const BlockRound& round, index_t output, const Nodes& route,
                       const std::vector<std::int32_t>& wanted, const std::vector<std::uint8_t>& full,
                       std::int64_t* cells, Fine* fine, Cell* totals) {
  const Rounded gradients = rounded(round, output);
  const Placed& p = place(round, output, route);
  std::vector<std::size_t> counted;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const index_t begin = p.begin[wanted[k]], m = p.end[wanted[k]] - begin;
    totals[k] = add_up(gradients, p.rows.at(begin), m);
    if (gradients.form == Rounding::packed) fine_sums(gradients.words, p.rows.at(begin), m, fine[k].g, fine[k].h);
    if (full[k]) counted.push_back(k);
  }
  std::vector<Histogram> histograms(counted.size());
  for (Histogram& h : histograms) h.make(bins_);
  parallel_for(static_cast<index_t>(counted.size()) * bins_.groups, [&](index_t task) {
    const std::size_t at = static_cast<std::size_t>(task / bins_.groups);
    const std::int32_t t = wanted[counted[at]];
    fill(histograms[at], false, bins_, task % bins_.groups, gradients, p.rows.at(p.begin[t]), 0, p.end[t] - p.begin[t]);
  });
  for (const Histogram& h : histograms) cells = std::copy(h.numbers().begin(), h.numbers().end(), cells);
}

void BoostBlock::add(const BlockRound& round, index_t output, const Nodes& route, const std::vector<double>& values) {
  const Placed& p = place(round, output, route);
  double* s = scores_.data() + output * rows();
  for (std::int32_t t = 0; t < route.size(); ++t)
    if (route.left[t] < 0)
      for (index_t i = p.begin[t]; i < p.end[t]; ++i) s[*p.rows.at(i)] += values[t];
  for (index_t i = p.rows.used(); i < rows(); ++i) {  // those that the sample of the round does not hold
    const index_t row = *p.rows.at(i);
    s[row] += values[route.leaf([&](std::int32_t f) { return bins_.col(f)[row]; })];
  }
}

}  // namespace hinge::trees
