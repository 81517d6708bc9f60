#include "trees/boosting.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "core/pool.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kChunk = 1 << 15;

}  // namespace

Booster::Booster(std::shared_ptr<const Bins> bins, const double* y, const double* weight, index_t outputs, bool exact,
                 bool frequency, GrowOptions options)
    : bins_(std::move(bins)),
      y_(y),
      weight_(weight),
      outputs_(outputs),
      options_(std::move(options)),
      scores_(bins_->rows * outputs, 0.0),
      gradients_({y, scores_.data(), weight, bins_->rows, outputs}, exact, frequency),
      growths_(1) {}

// Fills the root histograms of all classes in one pass, if their trees have the same rows.
bool Booster::fill_roots(const Round& round) {
  constexpr index_t kRootBytes = index_t{1} << 26;
  const Bins& bins = *bins_;
  const Rounded first = gradients_.rounded(0);
  const index_t bytes = static_cast<index_t>(bins.slots.size()) * kBins * static_cast<index_t>(sizeof(Cell));
  if (first.form != Rounding::packed || outputs_ < 2 || round.rows < 1 || outputs_ * bytes > kRootBytes) return false;
  roots_.resize(outputs_);
  for (Histogram& root : roots_) root.make(bins);
  const index_t parts = (outputs_ + kWordSets - 1) / kWordSets;
  parallel_for(parts * bins.groups, [&](index_t task) {
    const index_t k = task / bins.groups * kWordSets;
    fill_together(&roots_[k], std::min(kWordSets, outputs_ - k), bins, task % bins.groups, first.words + k * rows());
  });
  return true;
}

std::vector<Nodes> Booster::boost(const Round& round) {
  const Scored at{y_, scores_.data(), weight_, rows(), outputs_};
  const Differentiated what{round.loss, round.logistic, round.curvature};
  gradients_.round(what, at, gradients_.measure(what, at), round.seed);
  const bool filled = fill_roots(round);
  const auto root = [&](index_t k) { return filled ? &roots_[k] : nullptr; };
  std::vector<Nodes> trees(static_cast<std::size_t>(outputs_));
  // Grows as many trees concurrently as keep all threads busy, then the others one at a time on all threads.
  const index_t threads = num_threads(), concurrent = threads > 1 ? outputs_ / threads * threads : 0;
  growths_.resize(std::max<std::size_t>(growths_.size(), static_cast<std::size_t>(std::min(threads, concurrent))));
  std::mutex mutex;
  std::vector<Growth*> idle;
  for (Growth& g : growths_) idle.push_back(&g);
  parallel_for(concurrent, [&](index_t k) {
    const auto swap = [&](Growth* back) {
      const std::lock_guard lock(mutex);
      if (back) return idle.push_back(back), last_ = back;
      Growth* growth = idle.back();
      idle.pop_back();
      return growth;
    };
    Growth* growth = swap(nullptr);
    trees[k] = grow(round, k, *growth, root(k));
    swap(growth);
  });
  for (index_t k = concurrent; k < outputs_; ++k) trees[k] = grow(round, k, *(last_ = &growths_[0]), root(k));
  return trees;
}

Nodes Booster::grow(const Round& round, index_t output, Growth& growth, Histogram* root) {
  double* scores = scores_.data() + output * rows();
  Nodes tree =
      growth.grow(*bins_, gradients_.rounded(output), options_,
                  {round.seed, round.seed + static_cast<std::uint64_t>(output), round.rows, round.features}, root);
  if (round.logistic || !round.loss)
    for (const Growth::Leaf& leaf : growth.leaves()) tree.value[leaf.node] = damped(tree.value[leaf.node]);
  if (round.search) search_leaves(tree, growth, round, scores);
  update(tree, growth, round.eta, scores);
  return tree;
}

std::vector<std::uint32_t> Booster::left_out() const {
  if (!last_) return {};
  const LeafRows& rows = last_->rows();
  return {rows.at(rows.used()), rows.at(rows.all())};
}

double Booster::mean_loss(const Loss* loss) const {
  const index_t n = rows(), size = loss && loss->whole_arrays() ? n : kChunk, parts = (n + size - 1) / size;
  const std::vector<double> ones(weight_ ? 0 : std::min(n, size), 1.0);
  std::vector<double> sums(parts), weights(parts);
  const auto part = [&](index_t p) {
    const index_t begin = p * size, count = std::min(n, begin + size) - begin;
    const double* w = weight_ ? weight_ + begin : ones.data();
    for (index_t i = 0; i < count; ++i) weights[p] += w[i];
    if (loss) {
      sums[p] = loss->value(y_ + begin, scores_.data() + begin, w, count);
      return;
    }
    for (index_t i = 0; i < count; ++i) {  // log sum exp(s) - s_y, shifted by the largest score
      const double* s = scores_.data() + begin + i;
      double most = s[0], sum = 0;
      for (index_t k = 1; k < outputs_; ++k) most = std::max(most, s[k * n]);
      for (index_t k = 0; k < outputs_; ++k) sum += std::exp(s[k * n] - most);
      sums[p] += w[i] * (std::log(sum) + most - s[static_cast<index_t>(y_[begin + i]) * n]);
    }
  };
  if (parts == 1)
    part(0);
  else
    parallel_for(parts, part);
  return std::accumulate(sums.begin(), sums.end(), 0.0) / std::accumulate(weights.begin(), weights.end(), 0.0);
}

void Booster::update(Nodes& tree, const Growth& growth, double eta, double* s) const {
  for (double& v : tree.value) require_finite(v *= eta);
  const LeafRows& order = growth.rows();
  struct Part {
    double value;
    index_t begin, end;
  };
  std::vector<Part> parts;
  for (const Growth::Leaf& leaf : growth.leaves())
    for (index_t b = leaf.begin; b < leaf.end; b += kChunk)
      parts.push_back({tree.value[leaf.node], b, std::min(leaf.end, b + kChunk)});
  parallel_for(static_cast<index_t>(parts.size()), [&](index_t p) {
    for (index_t i = parts[p].begin; i < parts[p].end; ++i) s[*order.at(i)] += parts[p].value;
  });
  const index_t used = order.used(), left_out_rows = rows() - used, chunks = (left_out_rows + kChunk - 1) / kChunk;
  parallel_for(chunks, [&](index_t p) {
    for (index_t i = used + p * kChunk; i < std::min(rows(), used + (p + 1) * kChunk); ++i) {
      const index_t row = *order.at(i);
      s[row] += tree.value[tree.leaf([&](std::int32_t f) { return bins_->col(f)[row]; })];
    }
  });
}

}  // namespace hinge::trees
