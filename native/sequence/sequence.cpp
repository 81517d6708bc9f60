#include "sequence/sequence.hpp"

#include <numeric>

#include "core/pool.hpp"

namespace hinge {

void SequenceReader::read(index_t i, double* scores) {
  i_ = i;
  tree_ = {x_.length(i), x_.parent ? x_.parent + x_.start[i] : nullptr, nullptr};
  chain_scores(x_, p_, i, scores);
  if (!p_.crossed()) return;
  grow(tables_, tree_.length * p_.labels * p_.width);
  chain_tables(x_, p_, i, tables_.data());
  tree_.tables = tables_.data();
}

double* SequenceReader::read(index_t i) {
  grow(scores_, x_.length(i) * p_.width);
  read(i, scores_.data());
  return scores_.data();
}

double SequenceReader::value(const double* scores, const std::int32_t* labels) const {
  double sum = 0;
  for (index_t t = 0; t < length(); ++t)
    sum += scores[t * p_.width + labels[t]] + (parent(t) >= 0 ? pair(t, labels[parent(t)], labels[t]) : 0.0);
  triples_of(labels, [&](index_t cell) { sum += p_.triple[cell]; });
  return sum;
}

double SequenceReader::posterior(double* scores, double weight, double* pairs, bool each, double* triples) {
  if (each) grow(each_, length() * p_.labels * p_.width);
  if (p_.second())
    return trigram_posterior(p_, tree_, scores, weight, pairs, each ? each_.data() : nullptr, triples, scratch_);
  if (plain()) return chain_posterior(p_, length(), scores, weight, pairs, scratch_);
  return tree_posterior(p_, tree_, scores, weight, pairs, each ? each_.data() : nullptr, scratch_);
}

double SequenceReader::log_partition(const double* scores) {
  if (p_.second()) return trigram_log_partition(p_, tree_, scores, scratch_);
  if (plain()) return chain_log_partition(p_, length(), scores, scratch_);
  return tree_log_partition(p_, tree_, scores, scratch_);
}

double SequenceReader::best(const double* scores, std::int32_t* labels) {
  if (p_.second()) return trigram_best(p_, tree_, scores, labels, scratch_);
  if (plain()) return chain_viterbi(p_, length(), scores, labels, scratch_);
  return tree_best(p_, tree_, scores, labels, scratch_);
}

index_t SequenceReader::top(const double* scores, index_t count, std::int32_t* best, double* value) const {
  if (p_.second()) return trigram_top(p_, tree_, scores, count, best, value);
  return tree_top(p_, tree_, scores, count, best, value);
}

double EarlyStop::accuracy(const Potentials& p) const {
  const Tokens& x = data_->x;
  const auto parts = sequence_parts(x);
  std::vector<index_t> right(parts.size(), 0);
  parallel_for(static_cast<index_t>(parts.size()) - 1, [&](index_t part) {
    SequenceReader reader(x, p);
    std::vector<std::int32_t> best;
    for (index_t i = parts[part]; i < parts[part + 1]; ++i) {
      const index_t length = x.length(i);
      if (length == 0) continue;
      best.resize(length);
      reader.best(reader.read(i), best.data());
      for (index_t t = 0; t < length; ++t) right[part] += best[t] == data_->y[x.start[i] + t];
    }
  });
  return static_cast<double>(std::accumulate(right.begin(), right.end(), index_t{0})) / static_cast<double>(x.tokens);
}

}  // namespace hinge
