// Feed-forward networks and their training by backpropagation.
//
//   z_0 = x,   a_l = z_{l-1} W_l + b_l,   z_l = h(a_l) for l < L,   f(x) = a_L
//   minimise   sum_i c_i l(y_i, f(x_i)) / n + (l2 / 2) sum_l |W_l|^2    (the mean of c is one; biases are not
//   penalised)
//
// The backpropagated error of a unit is delta = dl/da:
//   delta_L = l'(y, a_L),   delta_l = (delta_{l+1} W_{l+1}') * h'(a_l),   dJ/dW_l = z_{l-1}' delta_l
//
// A step has two parallel phases. Rows: the batch is divided into shards, and each runs forward and backward by itself.
// Weights: each weight matrix is divided into blocks of rows, and each block computes its gradient and updates itself
// while it is in the cache. Both divisions depend only on shapes, so the weights have the same bits for any number of
// threads.
#pragma once
#include <vector>

#include "network/data.hpp"

namespace hinge::network {

enum class Activation { Identity, Logistic, Tanh, Relu, Gelu };

template <class T>
struct Layer {
  index_t in, out;
  T* weight;  // in x out, row-major
  T* bias;
};

template <class T>
struct Net {
  Activation activation;
  std::vector<Layer<T>> layers;
  index_t parameters() const;
};

enum class Method { Sgd, Adam };

// The optimiser settings of one epoch. The learning rates are separate, one per step.
struct Recipe {
  Method method = Method::Adam;
  double momentum = 0.9;  // beta_1 of Adam
  bool nesterov = false;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double l2 = 0;
  double decay = 0;  // decoupled: W -= rate * decay * W
  double clip = 0;   // bound on the norm of the gradient; 0 for none
  double dropout = 0;
};

// The dropped units are a function of (seed, step, layer, row of the batch, unit).
struct Dropout {
  double rate = 0;
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
};

// Buffers for passing a batch of at most `capacity` rows through one network.
template <class T>
class Machine {
 public:
  Machine(Net<T> net, index_t capacity);

  // Forward and backward pass over the given samples: fills activations and errors, returns the sum of weighted losses.
  // Gradients are those of that sum times `scale`.
  double passes(const Examples<T>& x, const Criterion<T>& loss, const index_t* rows, index_t n, double scale,
                const Dropout& dropout);
  // G = keep * G + gradient of the last passes, flat: W_1, b_1, W_2, b_2, ...
  void gradient(const Examples<T>& x, const index_t* rows, index_t n, double keep, T* G);
  // Computes the gradient and takes an optimiser step. `first`, `second` are the optimiser's moments (second only for
  // Adam); `count` is the number of this step, from 1.
  void step(const Examples<T>& x, const index_t* rows, index_t n, const Recipe& recipe, double rate,
            std::uint64_t count, T* first, T* second);

  const T* activation(index_t layer) const { return z_[layer].data(); }  // layer 0 is the input (dense only)
  const T* delta(index_t layer) const { return delta_[layer].data(); }   // layer 1 ... L
  const Net<T>& net() const { return net_; }

 private:
  struct Block {
    index_t layer, begin, end;  // rows [begin, end) of W; the block with begin 0 owns the bias
    index_t weights, bias;      // their offsets in a flat vector of parameters
  };
  double shard(const Examples<T>& x, const Criterion<T>& loss, const index_t* rows, index_t begin, index_t end,
               double scale, const Dropout& dropout);
  // g: rows [begin, end) of the gradient of W; b: that of the bias, if the block owns it.
  void block_gradient(const Block& block, const Examples<T>& x, const index_t* rows, index_t n, T keep, T* g, T* b);
  // The factor that scales the gradient to norm `recipe.clip`; stores the gradient, penalty included, in gradient_.
  double clipping(const Examples<T>& x, const index_t* rows, index_t n, const Recipe& recipe);
  template <class F>
  void for_blocks(index_t n, F&& body);

  Net<T> net_;
  index_t capacity_, shard_rows_, work_;
  std::vector<Block> blocks_;
  std::vector<std::vector<T>> z_, pre_, delta_;
  std::vector<T> gradient_;  // empty unless gradients are clipped
};

// out = f(x) for every sample, n x outputs.
template <class T>
void scores(const Net<T>& net, const Examples<T>& x, T* out);

// One pass over the samples in the given order, in batches; one entry of `rates` per batch. Returns the mean weighted
// loss, each batch at the weights before its step.
template <class T>
double epoch(Machine<T>& machine, const Examples<T>& x, const Criterion<T>& loss, const std::vector<index_t>& order,
             index_t batch, const double* rates, const Recipe& recipe, std::uint64_t seed, std::uint64_t first_count,
             T* first, T* second);

}  // namespace hinge::network
