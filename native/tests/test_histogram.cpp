#include "core/random.hpp"
#include "tests/check.hpp"
#include "trees/histogram.hpp"

namespace {

using hinge::index_t;
using namespace hinge::trees;

constexpr index_t kRows = 500, kCols = 37;  // three groups of slots, the last of them not full

// A table, its rows' words, and what they stand for.
struct Sample {
  std::vector<double> x;
  Bins bins;
  std::vector<std::uint32_t> words;
  std::vector<Cell> cells;
  Rounding form;

  explicit Sample(Rounding form_, std::uint64_t seed) : x(kRows * kCols), form(form_) {
    hinge::Random random(seed);
    for (double& v : x) v = std::floor(20 * random.uniform());
    BinOptions options;
    options.bundle = false;
    bins = make_bins(Table<double>{x.data(), kRows, kCols, kCols, 1}, nullptr, std::vector<std::uint8_t>(kCols, 0),
                     options);
    for (index_t i = 0; i < kRows; ++i) {
      const auto g = static_cast<std::int32_t>(random.below(1000)) - 500,
                 h = static_cast<std::int32_t>(random.below(256));
      words.push_back(form == Rounding::packed ? Packed::word(g, 0, h, 0) : static_cast<std::uint32_t>(g));
      cells.push_back({g, form == Rounding::packed ? h : 1, 1});
    }
  }

  Rounded rounded() const {
    Rounded rows;
    rows.form = form;
    rows.words = words.data();
    return rows;
  }

  // The cell of a bin of a feature over some rows.
  Cell wanted(index_t feature, int bin, const std::vector<std::uint32_t>& rows) const {
    Cell sum;
    for (const std::uint32_t row : rows)
      if (bins.col(feature)[row] == bin) sum += cells[row];
    return sum;
  }
};

bool same(const Cell& a, const Cell& b) { return a.g == b.g && a.h == b.h && a.c == b.c; }

// Whether all cells of a narrow histogram are those of the rows.
bool holds(const Sample& sample, Histogram& histogram, const std::vector<std::uint32_t>& rows) {
  bool all = true;
  for (index_t group = 0; group < sample.bins.groups; ++group)
    for (index_t k = sample.bins.group_begin[group]; k < sample.bins.group_begin[group + 1]; ++k)
      for (int bin = 0; bin < sample.bins.slots[k].codes; ++bin) {
        const std::int64_t* cells = histogram.narrow(sample.bins, group) + (k - sample.bins.group_begin[group]) * kBins;
        const Cell found = with_form(sample.form, [&]<class Form>(Form) { return widen<Form>(cells[bin]); });
        all &= same(found, sample.wanted(sample.bins.slots[k].parts[0].feature, bin, rows));
      }
  return all;
}

std::vector<std::uint32_t> every(index_t begin, index_t step) {
  std::vector<std::uint32_t> rows;
  for (index_t i = begin; i < kRows; i += step) rows.push_back(static_cast<std::uint32_t>(i));
  return rows;
}

Histogram filled(const Sample& sample, std::vector<std::uint32_t> rows) {
  Histogram out;
  out.make(sample.bins);
  const auto m = static_cast<index_t>(rows.size());
  rows.resize(rows.size() + 64);  // room for reading ahead
  for (index_t group = 0; group < sample.bins.groups; ++group)
    fill(out, true, sample.bins, group, sample.rounded(), rows.data(), 0, m);
  return out;
}

TEST("histograms count the rows they are given, in both narrow forms") {
  for (const Rounding form : {Rounding::packed, Rounding::constant}) {
    const Sample sample(form, 4);
    for (const auto& rows : {every(0, 1), every(1, 3), every(499, 1)}) {
      Histogram histogram = filled(sample, rows);
      CHECK(holds(sample, histogram, rows));
    }
  }
}

TEST("histograms of parts add up, and what a child leaves of its parent is its sibling") {
  for (const Rounding form : {Rounding::packed, Rounding::constant}) {
    const Sample sample(form, 5);
    Histogram even = filled(sample, every(0, 2)), odd = filled(sample, every(1, 2)), all = filled(sample, every(0, 1));
    for (index_t group = 0; group < sample.bins.groups; ++group)
      subtract(all, true, true, even, true, sample.bins, all_slots(sample.bins, group), form);
    CHECK(holds(sample, all, every(1, 2)));
    for (index_t group = 0; group < sample.bins.groups; ++group)
      merge(odd, even, true, sample.bins, all_slots(sample.bins, group));
    CHECK(holds(sample, odd, every(0, 1)));
  }
}

TEST("the sum over rows is the sum of their cells") {
  const Sample sample(Rounding::packed, 6);
  Cell wanted;
  for (const Cell& cell : sample.cells) wanted += cell;
  CHECK(same(add_up(sample.rounded(), nullptr, kRows), wanted));
}

TEST("bins of few values hold one value each, and their codes are in order") {
  const Sample sample(Rounding::packed, 7);
  for (index_t j = 0; j < kCols; ++j) {
    const Feature& feature = sample.bins.features[j];
    CHECK(feature.low == feature.high);
    for (index_t i = 0; i < kRows; ++i) CHECK(feature.low[sample.bins.col(j)[i]] == sample.x[i * kCols + j]);
  }
}

}  // namespace
