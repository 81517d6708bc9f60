// The inputs of a network: rows of samples, and the loss of its scores against their targets.
#pragma once
#include <memory>

#include "problem/loss.hpp"

namespace hinge::network {

// Rows of X, dense or CSR, float or double; the network computes in T. At most one batch is copied at a time.
template <class T>
class Examples {
 public:
  virtual ~Examples() = default;
  index_t rows() const { return rows_; }
  index_t cols() const { return cols_; }
  virtual bool sparse() const = 0;
  // Dense: copies the chosen rows to out, row-major.
  virtual void gather(const index_t* which, index_t n, T* out) const = 0;
  // Sparse: Z = X[which] W, and G = keep G + (X[which]' D) restricted to columns [begin, end) of X; G is the block.
  virtual void forward(const index_t* which, index_t n, const T* W, index_t width, T* Z) const = 0;
  virtual void backward(const index_t* which, index_t n, const T* D, index_t width, index_t begin, index_t end, T keep,
                        T* G) const = 0;

 protected:
  Examples(index_t rows, index_t cols) : rows_(rows), cols_(cols) {}
  index_t rows_, cols_;
};

template <class T, class S>
std::unique_ptr<Examples<T>> dense_examples(const S* data, index_t rows, index_t cols, index_t stride);
template <class T, class S, class I>
std::unique_ptr<Examples<T>> sparse_examples(const S* data, const I* indices, const I* indptr, index_t rows,
                                             index_t cols);

// The loss of a batch of scores (n x outputs).
template <class T>
class Criterion {
 public:
  virtual ~Criterion() = default;
  virtual index_t outputs() const = 0;
  // delta = scale * c l'(y, s) for the chosen samples; returns sum c l(y, s), not scaled.
  virtual double gradient(const index_t* which, index_t n, double scale, const T* s, T* delta) const = 0;
  virtual bool whole_arrays() const { return false; }
};

// -log softmax(s)_y for class codes y in 0 ... outputs-1; c are the sample weights.
template <class T>
std::unique_ptr<Criterion<T>> softmax_criterion(const double* y, const double* c, index_t outputs);
// A loss of one score, summed over the outputs: y is n x outputs.
template <class T>
std::unique_ptr<Criterion<T>> output_criterion(std::shared_ptr<Loss> loss, const double* y, const double* c,
                                               index_t outputs);

}  // namespace hinge::network
