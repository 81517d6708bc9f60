#include "sequence/trigram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <tuple>

#include "core/math.hpp"
#include "sequence/chain_kernels.hpp"

namespace hinge {
namespace {

using namespace chain;

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr double least = 1e-150;  // the product of two of these and a probability is still a normal number

// s_t(j) + T_t[i, j], plus s_0(i) at t = 1: the score of a step without that of the triple. labels x width.
HINGE_INLINE void step_scores(const Potentials& p, const Tree& chain, const double* scores, index_t t,
                              double* __restrict out) {
  const index_t w = p.width, k = p.labels;
  const double* T = chain.tables ? chain.tables + t * k * w : p.pair.data();
  const double* own = scores + t * w;
  for (index_t i = 0; i < k; ++i) {
    const double first = t == 1 ? scores[i] : 0.0;
    for (index_t j = 0; j < w; ++j) out[i * w + j] = first + own[j] + T[i * w + j];
  }
}

HINGE_INLINE void transpose(const double* __restrict from, index_t labels, index_t width, double* __restrict to) {
  for (index_t i = 0; i < labels; ++i)
    for (index_t j = 0; j < labels; ++j) to[j * width + i] = from[i * width + j];
}

HINGE_INLINE double largest_of(const double* a, index_t n) {
  double top = kNever;
  for (index_t k = 0; k < n; ++k) top = a[k] > top ? a[k] : top;
  return top;
}

HINGE_INLINE double total(const double* a, index_t n) {
  double sum = 0;
  for (index_t k = 0; k < n; ++k) sum += a[k];
  return sum;
}

HINGE_INLINE void multiply(double* a, double by, index_t n) {
  for (index_t k = 0; k < n; ++k) a[k] *= by;
}

// The results of a pass over one sequence, added to the caller's tables only after it has succeeded.
struct Found {
  Table marginals, pairs, triples;

  Found(const Potentials& p, index_t length)
      : marginals(length * p.width, 0.0), pairs(p.labels * p.width, 0.0), triples(p.triple.size(), 0.0) {}
};

// Adds the probabilities of label pairs at t, arranged [j][i].
HINGE_INLINE void take_pairs(const Potentials& p, index_t t, const double* probability, Found& found, double* each) {
  const index_t w = p.width, k = p.labels;
  for (index_t j = 0; j < k; ++j)
    for (index_t i = 0; i < k; ++i) {
      const double value = probability[j * w + i];
      found.marginals[t * w + j] += value;
      if (t == 1) found.marginals[i] += value;
      found.pairs[i * w + j] += value;
      if (each) each[(t * k + i) * w + j] = value;
    }
}

// log Z, marginals, pairs and A with expected triples = A * exp(R - shift), on scaled probabilities. Returns NaN if a
// scale is too small. If `found` is null, computes only log Z.
template <int V>
HINGE_HOT double scaled(const Potentials& p, const Tree& chain, const double* scores, Found* found, double* each,
                        ChainScratch& scratch) {
  const index_t w = wide<V>(p.width), k = p.labels, n = chain.length, m = k * w;
  const double failed = std::numeric_limits<double>::quiet_NaN();
  double* alpha = scratch.alpha.data();  // at t arranged [j][i]
  double* f = scratch.buffer.data();     // exp(step_scores - their maximum), arranged [i][j]
  double* row = scratch.beta.data();
  double* beta = row + m;  // arranged [j][i]
  double* probability = beta + m;
  double* g = probability + m;
  double* norm = g + m;
  std::fill(alpha, alpha + n * m, 0.0);
  double log_z = 0;
  for (index_t t = 1; t < n; ++t) {
    double* ft = f + t * m;
    step_scores(p, chain, scores, t, ft);
    const double shift = largest_of(ft, m);
    if (shift == kNever) return failed;
    for (index_t c = 0; c < m; ++c) ft[c] = math::exp(ft[c] - shift);
    if (t == 1) {
      std::copy(ft, ft + m, row);
    } else {
      for (index_t i = 0; i < k; ++i)
        combine<V, double>(nullptr, alpha + (t - 1) * m + i * w, nullptr, k, p.triple_power.data() + i * m, w,
                           row + i * w);
      for (index_t c = 0; c < m; ++c) row[c] *= ft[c];
      log_z += p.triple_shift;
    }
    norm[t] = total(row, m);
    if (!(norm[t] >= least)) return failed;
    log_z += shift + std::log(norm[t]);
    multiply(row, 1 / norm[t], m);
    transpose(row, k, w, alpha + t * m);
  }
  std::fill(beta, beta + m, 0.0);
  for (index_t j = 0; j < k; ++j) std::fill(beta + j * w, beta + j * w + k, 1.0);
  std::fill(row, row + m, 0.0);
  for (index_t t = n - 1; t > 0; --t) {
    const double* at = alpha + t * m;
    for (index_t c = 0; c < m; ++c) probability[c] = at[c] * beta[c];
    const double z = total(probability, m);
    if (!(z >= least)) return failed;
    if (found) {
      multiply(probability, 1 / z, m);
      take_pairs(p, t, probability, *found, each);
    }
    if (t == 1) break;
    transpose(beta, k, w, row);
    for (index_t c = 0; c < m; ++c) g[c] = row[c] * f[t * m + c];
    const double* before = alpha + (t - 1) * m;
    if (found) {
      const double share = 1 / (norm[t] * z);
      for (index_t i = 0; i < k; ++i)
        for (index_t h = 0; h < k; ++h) {
          const double a = share * before[i * w + h];
          double* out = found->triples.data() + (i * k + h) * w;
          for (index_t j = 0; j < w; ++j) out[j] += a * g[i * w + j];
        }
    }
    for (index_t i = 0; i < k; ++i)
      combine<V, double>(nullptr, g + i * w, nullptr, k, p.triple_power_t.data() + i * m, w, beta + i * w);
    const double size = total(beta, m);
    if (!(size >= least)) return failed;
    multiply(beta, 1 / size, m);
  }
  if (found)
    for (std::size_t c = 0; c < found->triples.size(); ++c) found->triples[c] *= p.triple_power[c];
  return log_z;
}

double scaled_of(const Potentials& p, const Tree& chain, const double* scores, Found* found, double* each,
                 ChainScratch& scratch) {
  const index_t m = p.labels * p.width;
  grow(scratch.alpha, chain.length * m);
  grow(scratch.buffer, chain.length * m);
  grow(scratch.beta, 4 * m + chain.length);
  HINGE_BY_WIDTH(p.width, scaled, p, chain, scores, found, each, scratch)
}

// log sum exp(a)
double log_sum(const std::vector<double>& a) {
  const double top = largest_of(a.data(), static_cast<index_t>(a.size()));
  if (top == kNever) return kNever;
  double sum = 0;
  for (double value : a) sum += math::exp(value - top);
  return top + std::log(sum);
}

// As scaled(), with logarithms: exact for any scores. Returns -inf if no labelling is allowed.
double logarithms(const Potentials& p, const Tree& chain, const double* scores, Found* found, double* each) {
  const index_t w = p.width, k = p.labels, n = chain.length, m = k * w;
  Table alpha(n * m, kNever), f(n * m), beta(m, kNever), next(m, kNever), probability(m, 0.0);
  std::vector<double> shift(n, 0.0), terms(k), cells(k * k);
  double log_z = 0;
  for (index_t t = 1; t < n; ++t) {
    double* at = alpha.data() + t * m;
    step_scores(p, chain, scores, t, f.data() + t * m);
    for (index_t i = 0; i < k; ++i)
      for (index_t j = 0; j < k; ++j) {
        double sum = 0;
        if (t > 1) {
          for (index_t h = 0; h < k; ++h) terms[h] = at[i * w + h - m] + p.triple[(i * k + h) * w + j];
          sum = log_sum(terms);
        }
        at[j * w + i] = cells[j * k + i] = sum + f[t * m + i * w + j];
      }
    shift[t] = log_sum(cells);
    if (shift[t] == kNever) return kNever;
    log_z += shift[t];
    for (index_t c = 0; c < m; ++c) at[c] -= shift[t];
  }
  if (!found) return log_z;
  for (index_t j = 0; j < k; ++j) std::fill_n(beta.begin() + j * w, k, 0.0);
  for (index_t t = n - 1; t > 0; --t) {  // beta_t is scaled so that sum exp(alpha_t + beta_t) = 1
    const double* at = alpha.data() + t * m;
    for (index_t c = 0; c < m; ++c) probability[c] = math::exp(at[c] + beta[c]);
    take_pairs(p, t, probability.data(), *found, each);
    if (t == 1) break;
    for (index_t i = 0; i < k; ++i)
      for (index_t h = 0; h < k; ++h) {
        for (index_t j = 0; j < k; ++j) {
          terms[j] = p.triple[(i * k + h) * w + j] + f[t * m + i * w + j] + beta[j * w + i] - shift[t];
          found->triples[(i * k + h) * w + j] += math::exp(at[i * w + h - m] + terms[j]);
        }
        next[i * w + h] = log_sum(terms);
      }
    std::swap(beta, next);
  }
  return log_z;
}

// V_t(i, j): the best score of labels up to t that end in i, j; the predecessor is recomputed on the way back.
template <int V>
HINGE_HOT double viterbi(const Potentials& p, const Tree& chain, const double* scores, std::int32_t* best,
                         ChainScratch& scratch) {
  const index_t w = wide<V>(p.width), k = p.labels, n = chain.length, m = k * w;
  double* value = scratch.alpha.data();  // at t arranged [j][i]
  double* row = scratch.beta.data();
  double* step = row + m;
  std::fill(value, value + n * m, kNever);
  for (index_t t = 1; t < n; ++t) {
    step_scores(p, chain, scores, t, step);
    if (t == 1) {
      std::copy(step, step + m, row);
    } else {
      for (index_t i = 0; i < k; ++i)
        combine_max<V>(value + (t - 1) * m + i * w, k, p.triple.data() + i * m, w, row + i * w);
      for (index_t c = 0; c < m; ++c) row[c] += step[c];
    }
    transpose(row, k, w, value + t * m);
  }
  const double* end = value + (n - 1) * m;
  const index_t cell = std::max_element(end, end + m) - end;
  index_t j = cell / w, i = cell % w;
  const double top = end[cell];
  best[n - 1] = static_cast<std::int32_t>(j);
  best[n - 2] = static_cast<std::int32_t>(i);
  for (index_t t = n - 1; t > 1; --t) {
    const double* a = value + (t - 1) * m + i * w;
    double most = kNever;
    index_t first = 0;
    for (index_t h = 0; h < k; ++h) {
      const double candidate = a[h] + p.triple[(i * k + h) * w + j];
      if (candidate > most) most = candidate, first = h;
    }
    best[t - 2] = static_cast<std::int32_t>(first);
    j = i;
    i = first;
  }
  return top;
}

// One of the best labellings that end in a label pair: the label before the pair, and the index in that pair's list.
struct Link {
  double value;
  std::int32_t before, rank;
  bool operator<(const Link& other) const {
    if (value != other.value) return value > other.value;
    return std::tie(before, rank) < std::tie(other.before, other.rank);
  }
};

void keep(std::vector<Link>& links, index_t count) {
  const index_t most = std::min(count, static_cast<index_t>(links.size()));
  std::partial_sort(links.begin(), links.begin() + most, links.end());
  links.resize(most);
}

}  // namespace

double trigram_posterior(const Potentials& p, const Tree& chain, double* scores, double weight, double* pairs,
                         double* each, double* triples, ChainScratch& scratch) {
  if (chain.length < 3) return tree_posterior(p, chain, scores, weight, pairs, each, scratch);
  if (each) std::fill(each, each + p.labels * p.width, 0.0);
  Found found(p, chain.length);
  double log_z = scaled_of(p, chain, scores, &found, each, scratch);
  if (!(log_z == log_z)) {
    found = Found(p, chain.length);
    log_z = logarithms(p, chain, scores, &found, each);
    if (log_z == kNever) throw std::invalid_argument("the constraints allow no labelling of one of the sequences");
  }
  std::copy(found.marginals.begin(), found.marginals.end(), scores);
  if (pairs)
    for (std::size_t c = 0; c < found.pairs.size(); ++c) pairs[c] += weight * found.pairs[c];
  if (triples)
    for (std::size_t c = 0; c < found.triples.size(); ++c) triples[c] += weight * found.triples[c];
  return log_z;
}

double trigram_log_partition(const Potentials& p, const Tree& chain, const double* scores, ChainScratch& scratch) {
  if (chain.length < 3) return tree_log_partition(p, chain, scores, scratch);
  const double log_z = scaled_of(p, chain, scores, nullptr, nullptr, scratch);
  return log_z == log_z ? log_z : logarithms(p, chain, scores, nullptr, nullptr);
}

namespace {

double viterbi_of(const Potentials& p, const Tree& chain, const double* scores, std::int32_t* best,
                  ChainScratch& scratch) {
  const index_t m = p.labels * p.width;
  grow(scratch.alpha, chain.length * m);
  grow(scratch.beta, 2 * m);
  HINGE_BY_WIDTH(p.width, viterbi, p, chain, scores, best, scratch)
}

}  // namespace

double trigram_best(const Potentials& p, const Tree& chain, const double* scores, std::int32_t* best,
                    ChainScratch& scratch) {
  if (chain.length < 3) return tree_best(p, chain, scores, best, scratch);
  return viterbi_of(p, chain, scores, best, scratch);
}

index_t trigram_top(const Potentials& p, const Tree& chain, const double* scores, index_t count, std::int32_t* best,
                    double* value) {
  const index_t n = chain.length, k = p.labels, w = p.width;
  if (n < 3) return tree_top(p, chain, scores, count, best, value);
  std::vector<std::vector<Link>> lists(n * k * k);  // at t, i, j: best first
  Table step(k * w);
  for (index_t t = 1; t < n; ++t) {
    step_scores(p, chain, scores, t, step.data());
    for (index_t i = 0; i < k; ++i)
      for (index_t j = 0; j < k; ++j) {
        const double own = step[i * w + j];
        if (own == kNever) continue;
        std::vector<Link>& links = lists[(t * k + i) * k + j];
        if (t == 1) {
          links.push_back({own, -1, 0});
          continue;
        }
        for (index_t h = 0; h < k; ++h) {
          const std::vector<Link>& list = lists[((t - 1) * k + h) * k + i];
          const double add = own + p.triple[(i * k + h) * w + j];
          for (std::size_t r = 0; r < list.size(); ++r)
            links.push_back({list[r].value + add, static_cast<std::int32_t>(h), static_cast<std::int32_t>(r)});
        }
        keep(links, count);
      }
  }
  std::vector<Link> ends;  // `before`: the last label pair
  for (index_t pair = 0; pair < k * k; ++pair) {
    const std::vector<Link>& list = lists[(n - 1) * k * k + pair];
    for (std::size_t r = 0; r < list.size(); ++r)
      ends.push_back({list[r].value, static_cast<std::int32_t>(pair), static_cast<std::int32_t>(r)});
  }
  keep(ends, count);
  for (std::size_t r = 0; r < ends.size(); ++r) {
    std::int32_t* labels = best + static_cast<index_t>(r) * n;
    value[r] = ends[r].value;
    index_t i = ends[r].before / k, j = ends[r].before % k, rank = ends[r].rank;
    labels[n - 1] = static_cast<std::int32_t>(j);
    labels[n - 2] = static_cast<std::int32_t>(i);
    for (index_t t = n - 1; t > 1; --t) {
      const Link& link = lists[(t * k + i) * k + j][rank];
      labels[t - 2] = link.before;
      rank = link.rank;
      j = i;
      i = link.before;
    }
  }
  return static_cast<index_t>(ends.size());
}

}  // namespace hinge
