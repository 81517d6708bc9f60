#include "network/network.hpp"

#include <algorithm>
#include <cmath>

#include "core/blas.hpp"
#include "core/monitor.hpp"
#include "core/pool.hpp"
#include "core/random.hpp"
#include "network/product.hpp"
#include "network/units.hpp"

namespace hinge::network {
namespace {

// Phases with fewer multiply-adds than this run on one thread, because waking another costs a few microseconds.
constexpr index_t kParallelWork = 400'000;
constexpr index_t kScoreRows = 96;

template <class F>
void for_parts(index_t parts, index_t work, F&& body) {
  if (parts > 1 && work >= kParallelWork) {
    parallel_for(parts, body);
  } else {
    for (index_t p = 0; p < parts; ++p) body(p);
  }
}

// z = h(z + b) row by row; `pre` stores the argument of h if h' needs it (null otherwise).
template <class U, class T>
HINGE_HOT void activate(T* __restrict z, const T* __restrict bias, index_t rows, index_t width, T* __restrict pre) {
  for (index_t i = 0; i < rows; ++i) {
    T* __restrict row = z + i * width;
    if (pre) {
      for (index_t j = 0; j < width; ++j) pre[i * width + j] = row[j] + bias[j];
    }
    for (index_t j = 0; j < width; ++j) row[j] = U::value(row[j] + bias[j]);
  }
}

// delta *= h'(a). `keep` undoes the scaling of dropout in z (delta of a dropped unit is zero already).
template <class U, class T>
HINGE_HOT void pass_back(T* __restrict delta, const T* __restrict z, const T* __restrict pre, index_t n, T keep) {
  if (pre) {
    for (index_t e = 0; e < n; ++e) delta[e] *= U::derivative(pre[e], T(0));
  } else {
    for (index_t e = 0; e < n; ++e) delta[e] *= U::derivative(T(0), keep * z[e]);
  }
}

template <class F>
void with_unit(Activation activation, F&& f) {
  switch (activation) {
    case Activation::Identity:
      return f(units::Identity{});
    case Activation::Logistic:
      return f(units::Logistic{});
    case Activation::Tanh:
      return f(units::Tanh{});
    case Activation::Relu:
      return f(units::Relu{});
    case Activation::Gelu:
      return f(units::Gelu{});
  }
}

// Dropout rates are multiples of 1/65536, so that one random word serves four units.
struct Mask {
  std::uint64_t key;
  std::uint32_t threshold;
  explicit Mask(const Dropout& d, index_t layer)
      : key(mix64(mix64(mix64(d.seed) ^ d.step) ^ static_cast<std::uint64_t>(layer))),
        threshold(static_cast<std::uint32_t>(std::lround(d.rate * 65536.0))) {}
  double kept() const { return 1.0 - threshold / 65536.0; }
};

// Multiplies z by 0 or 1/kept, so that the mean over masks is z. `first` is the row of the batch at which z starts.
template <class T>
HINGE_HOT void drop(T* __restrict z, index_t rows, index_t width, index_t first, std::uint64_t key,
                    std::uint32_t threshold, T scale) {
  for (index_t i = 0; i < rows; ++i) {
    const std::uint64_t row = static_cast<std::uint64_t>(first + i) << 32;
    for (index_t g = 0; g < width; g += 4) {
      const std::uint64_t bits = mix64(key ^ (row | static_cast<std::uint64_t>(g)));
      const index_t stop = width - g < 4 ? width - g : 4;
      for (index_t q = 0; q < stop; ++q)
        z[i * width + g + q] *= ((bits >> (16 * q)) & 0xffff) >= threshold ? scale : T(0);
    }
  }
}

template <class T>
HINGE_HOT void column_sums(const T* __restrict D, index_t rows, index_t width, T keep, T* __restrict out) {
  for (index_t j = 0; j < width; ++j) out[j] = keep == T(0) ? T(0) : keep * out[j];
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < width; ++j) out[j] += D[i * width + j];
}

template <class T>
HINGE_HOT double square_sum(const T* __restrict x, index_t n) {
  double sum = 0;
  for (index_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

// One optimiser step on n parameters. All rates are precomputed in type T.
template <class T>
struct Move {
  T rate, l2, shrink, clip, momentum, beta2, epsilon;
};

template <class T>
HINGE_HOT void adam(T* __restrict w, const T* __restrict g, T* __restrict m, T* __restrict v, index_t n, Move<T> o) {
  for (index_t i = 0; i < n; ++i) {
    const T gradient = o.clip * (g[i] + o.l2 * w[i]);
    m[i] = o.momentum * m[i] + (T(1) - o.momentum) * gradient;
    v[i] = o.beta2 * v[i] + (T(1) - o.beta2) * gradient * gradient;
    w[i] = o.shrink * w[i] - o.rate * m[i] / (std::sqrt(v[i]) + o.epsilon);
  }
}

template <class T, bool nesterov>
HINGE_HOT void sgd(T* __restrict w, const T* __restrict g, T* __restrict velocity, index_t n, Move<T> o) {
  for (index_t i = 0; i < n; ++i) {
    const T gradient = o.clip * (g[i] + o.l2 * w[i]);
    velocity[i] = o.momentum * velocity[i] - o.rate * gradient;
    w[i] = o.shrink * w[i] + (nesterov ? o.momentum * velocity[i] - o.rate * gradient : velocity[i]);
  }
}

template <class T>
void move(const Recipe& recipe, const Move<T>& o, T* w, const T* g, T* first, T* second, index_t n) {
  if (recipe.method == Method::Adam) {
    adam(w, g, first, second, n, o);
  } else if (recipe.nesterov) {
    sgd<T, true>(w, g, first, n, o);
  } else {
    sgd<T, false>(w, g, first, n, o);
  }
}

// a_l = z_{l-1} W_l for `rows` rows; the input of the first layer may be sparse.
template <class T>
void forward_product(const Layer<T>& layer, index_t rows, const T* below, T* out) {
  product<T>(rows, layer.out, layer.in, below, layer.in, 1, layer.weight, layer.out, T(0), out, layer.out);
}

}  // namespace

template <class T>
index_t Net<T>::parameters() const {
  index_t total = 0;
  for (const auto& layer : layers) total += (layer.in + 1) * layer.out;
  return total;
}

template <class T>
Machine<T>::Machine(Net<T> net, index_t capacity) : net_(std::move(net)), capacity_(capacity) {
  const auto depth = static_cast<index_t>(net_.layers.size());
  z_.resize(depth + 1);
  delta_.resize(depth + 1);
  pre_.resize(depth + 1);
  work_ = net_.parameters();
  // At least 24 rows (two tiles of product.cpp), so that each part reuses the weights it reads often enough, and enough
  // rows for half a million multiply-adds.
  shard_rows_ = std::clamp<index_t>(500'000 / work_, 24, 256);
  index_t offset = 0;
  for (index_t l = 1; l <= depth; ++l) {
    const auto& layer = net_.layers[l - 1];
    z_[l].resize(capacity * layer.out);
    delta_[l].resize(capacity * layer.out);
    if (net_.activation == Activation::Gelu && l < depth) pre_[l].resize(capacity * layer.out);
    const index_t rows = std::max<index_t>(48, 6144 / layer.out);  // about 24 KiB of weights
    for (index_t begin = 0; begin < layer.in; begin += rows)
      blocks_.push_back(
          {l, begin, std::min(begin + rows, layer.in), offset + begin * layer.out, offset + layer.in * layer.out});
    offset += (layer.in + 1) * layer.out;
  }
}

template <class T>
double Machine<T>::passes(const Examples<T>& x, const Criterion<T>& loss, const index_t* rows, index_t n, double scale,
                          const Dropout& dropout) {
  if (!x.sparse() && z_[0].empty()) z_[0].resize(capacity_ * x.cols());
  const index_t shards = loss.whole_arrays() ? 1 : (n + shard_rows_ - 1) / shard_rows_;
  std::vector<double> sums(shards);
  for_parts(shards, n * work_, [&](index_t s) {
    sums[s] = shard(x, loss, rows, range_begin(n, shards, s), range_begin(n, shards, s + 1), scale, dropout);
  });
  double sum = 0;
  for (double part : sums) sum += part;
  return sum;
}

template <class T>
double Machine<T>::shard(const Examples<T>& x, const Criterion<T>& loss, const index_t* rows, index_t begin,
                         index_t end, double scale, const Dropout& dropout) {
  const auto depth = static_cast<index_t>(net_.layers.size());
  const index_t n = end - begin;
  const auto at = [&](std::vector<T>& buffer, index_t width) {
    return buffer.empty() ? nullptr : buffer.data() + begin * width;
  };
  const auto with_mask = [&](index_t l, T* values, index_t width) {
    if (dropout.rate <= 0) return;
    const Mask mask(dropout, l);
    drop(values, n, width, begin, mask.key, mask.threshold, static_cast<T>(1.0 / mask.kept()));
  };
  if (!x.sparse()) x.gather(rows + begin, n, at(z_[0], x.cols()));
  for (index_t l = 1; l <= depth; ++l) {
    const auto& layer = net_.layers[l - 1];
    T* z = at(z_[l], layer.out);
    if (l == 1 && x.sparse()) {
      x.forward(rows + begin, n, layer.weight, layer.out, z);
    } else {
      forward_product(layer, n, at(z_[l - 1], layer.in), z);
    }
    if (l == depth) {
      activate<units::Identity>(z, layer.bias, n, layer.out, static_cast<T*>(nullptr));
    } else {
      with_unit(net_.activation,
                [&](auto unit) { activate<decltype(unit)>(z, layer.bias, n, layer.out, at(pre_[l], layer.out)); });
      with_mask(l, z, layer.out);
    }
  }
  const double sum =
      loss.gradient(rows + begin, n, scale, at(z_[depth], loss.outputs()), at(delta_[depth], loss.outputs()));
  const T kept = dropout.rate > 0 ? static_cast<T>(Mask(dropout, 0).kept()) : T(1);
  for (index_t l = depth - 1; l >= 1; --l) {
    const auto& above = net_.layers[l];
    T* delta = at(delta_[l], above.in);
    blas::gemm('T', 'N', above.in, n, above.out, T(1), above.weight, above.out, at(delta_[l + 1], above.out), above.out,
               T(0), delta, above.in);
    with_mask(l, delta, above.in);
    with_unit(net_.activation, [&](auto unit) {
      pass_back<decltype(unit)>(delta, at(z_[l], above.in), at(pre_[l], above.in), n * above.in, kept);
    });
  }
  return sum;
}

template <class T>
void Machine<T>::block_gradient(const Block& block, const Examples<T>& x, const index_t* rows, index_t n, T keep, T* g,
                                T* b) {
  const auto& layer = net_.layers[block.layer - 1];
  const T* delta = delta_[block.layer].data();
  if (block.layer == 1 && x.sparse()) {
    x.backward(rows, n, delta, layer.out, block.begin, block.end, keep, g);
  } else {
    product<T>(block.end - block.begin, layer.out, n, z_[block.layer - 1].data() + block.begin, 1, layer.in, delta,
               layer.out, keep, g, layer.out);
  }
  if (block.begin == 0) column_sums(delta, n, layer.out, keep, b);
}

template <class T>
template <class F>
void Machine<T>::for_blocks(index_t n, F&& body) {
  const auto count = static_cast<index_t>(blocks_.size());
  for_parts(count, n * work_, [&](index_t b) { body(b, blocks_[b], net_.layers[blocks_[b].layer - 1]); });
}

template <class T>
void Machine<T>::gradient(const Examples<T>& x, const index_t* rows, index_t n, double keep, T* G) {
  for_blocks(n, [&](index_t, const Block& block, const Layer<T>&) {
    block_gradient(block, x, rows, n, static_cast<T>(keep), G + block.weights, G + block.bias);
  });
}

template <class T>
double Machine<T>::clipping(const Examples<T>& x, const index_t* rows, index_t n, const Recipe& recipe) {
  gradient_.resize(net_.parameters());
  T* G = gradient_.data();
  std::vector<double> squares(blocks_.size());
  for_blocks(n, [&](index_t b, const Block& block, const Layer<T>& layer) {
    T* g = G + block.weights;
    block_gradient(block, x, rows, n, T(0), g, G + block.bias);
    const T* w = layer.weight + block.begin * layer.out;
    const index_t size = (block.end - block.begin) * layer.out;
    for (index_t i = 0; i < size; ++i) g[i] += static_cast<T>(recipe.l2) * w[i];
    squares[b] = square_sum(g, size);
    if (block.begin == 0) squares[b] += square_sum(G + block.bias, layer.out);
  });
  double square = 0;
  for (double part : squares) square += part;
  return std::min(1.0, recipe.clip / std::max(std::sqrt(square), 1e-300));
}

template <class T>
void Machine<T>::step(const Examples<T>& x, const index_t* rows, index_t n, const Recipe& recipe, double rate,
                      std::uint64_t count, T* first, T* second) {
  const bool clipped = recipe.clip > 0;
  Move<T> weights;
  weights.rate = static_cast<T>(rate);
  if (recipe.method == Method::Adam) {
    const double t = static_cast<double>(count);
    weights.rate = static_cast<T>(rate * std::sqrt(1 - std::pow(recipe.beta2, t)) / (1 - std::pow(recipe.momentum, t)));
  }
  weights.clip = static_cast<T>(clipped ? clipping(x, rows, n, recipe) : 1.0);
  weights.l2 = static_cast<T>(clipped ? 0.0 : recipe.l2);  // a clipped gradient includes it already
  weights.shrink = static_cast<T>(1 - rate * recipe.decay);
  weights.momentum = static_cast<T>(recipe.momentum);
  weights.beta2 = static_cast<T>(recipe.beta2);
  weights.epsilon = static_cast<T>(recipe.epsilon);
  Move<T> biases = weights;
  biases.l2 = 0;
  biases.shrink = 1;
  for_blocks(n, [&](index_t, const Block& block, const Layer<T>& layer) {
    const index_t size = (block.end - block.begin) * layer.out;
    T *g = gradient_.data() + block.weights, *b = gradient_.data() + block.bias;
    if (!clipped) {
      thread_local std::vector<T> room;  // stays in cache, unlike a full gradient
      if (static_cast<index_t>(room.size()) < size + layer.out) room.resize(size + layer.out);
      g = room.data();
      b = g + size;
      block_gradient(block, x, rows, n, T(0), g, b);
    }
    const auto apply = [&](T* w, const T* gradient, index_t at, index_t length, const Move<T>& o) {
      move(recipe, o, w, gradient, first + at, second ? second + at : nullptr, length);
    };
    apply(layer.weight + block.begin * layer.out, g, block.weights, size, weights);
    if (block.begin == 0) apply(layer.bias, b, block.bias, layer.out, biases);
  });
}

template <class T>
void scores(const Net<T>& net, const Examples<T>& x, T* out) {
  const index_t n = x.rows(), chunks = (n + kScoreRows - 1) / kScoreRows, outputs = net.layers.back().out;
  for_parts(chunks, n * net.parameters(), [&](index_t chunk) {
    const index_t begin = chunk * kScoreRows, rows = std::min(begin + kScoreRows, n) - begin;
    std::vector<index_t> which(rows);
    for (index_t i = 0; i < rows; ++i) which[i] = begin + i;
    std::vector<T> below, above;
    if (!x.sparse()) {
      below.resize(rows * x.cols());
      x.gather(which.data(), rows, below.data());
    }
    for (std::size_t l = 0; l < net.layers.size(); ++l) {
      const auto& layer = net.layers[l];
      above.resize(rows * layer.out);
      if (l == 0 && x.sparse()) {
        x.forward(which.data(), rows, layer.weight, layer.out, above.data());
      } else {
        forward_product(layer, rows, below.data(), above.data());
      }
      const auto activation = l + 1 == net.layers.size() ? Activation::Identity : net.activation;
      with_unit(activation, [&](auto unit) {
        activate<decltype(unit)>(above.data(), layer.bias, rows, layer.out, static_cast<T*>(nullptr));
      });
      std::swap(below, above);
    }
    std::copy(below.begin(), below.begin() + rows * outputs, out + begin * outputs);
  });
}

template <class T>
double epoch(Machine<T>& machine, const Examples<T>& x, const Criterion<T>& loss, const std::vector<index_t>& order,
             index_t batch, const double* rates, const Recipe& recipe, std::uint64_t seed, std::uint64_t first_count,
             T* first, T* second) {
  const auto n = static_cast<index_t>(order.size());
  double sum = 0;
  for (index_t begin = 0, s = 0; begin < n; begin += batch, ++s) {
    if (Monitor* monitor = Monitor::current()) monitor->poll();
    const index_t size = std::min(batch, n - begin);
    const std::uint64_t count = first_count + static_cast<std::uint64_t>(s);
    const index_t* rows = order.data() + begin;
    sum += machine.passes(x, loss, rows, size, 1.0 / static_cast<double>(size), {recipe.dropout, seed, count});
    machine.step(x, rows, size, recipe, rates[s], count, first, second);
  }
  return sum / static_cast<double>(n);
}

#define HINGE_NETWORK(T)                                                                                               \
  template struct Net<T>;                                                                                              \
  template class Machine<T>;                                                                                           \
  template void scores<T>(const Net<T>&, const Examples<T>&, T*);                                                      \
  template double epoch<T>(Machine<T>&, const Examples<T>&, const Criterion<T>&, const std::vector<index_t>&, index_t, \
                           const double*, const Recipe&, std::uint64_t, std::uint64_t, T*, T*);
HINGE_NETWORK(float)
HINGE_NETWORK(double)
#undef HINGE_NETWORK

}  // namespace hinge::network
