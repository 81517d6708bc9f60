#include "network/data.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "network/units.hpp"

namespace hinge::network {
namespace {

template <class T, class S>
HINGE_HOT void convert(const S* __restrict in, index_t n, T* __restrict out) {
  for (index_t j = 0; j < n; ++j) out[j] = static_cast<T>(in[j]);
}

template <class T>
HINGE_HOT void axpy(T a, const T* __restrict x, index_t n, T* __restrict y) {
  for (index_t j = 0; j < n; ++j) y[j] += a * x[j];
}

template <class T, class S>
class DenseExamples final : public Examples<T> {
 public:
  DenseExamples(const S* data, index_t rows, index_t cols, index_t stride)
      : Examples<T>(rows, cols), data_(data), stride_(stride) {}
  bool sparse() const override { return false; }
  void gather(const index_t* which, index_t n, T* out) const override {
    const index_t d = this->cols_;
    for (index_t i = 0; i < n; ++i) convert(data_ + which[i] * stride_, d, out + i * d);
  }
  void forward(const index_t*, index_t, const T*, index_t, T*) const override {}
  void backward(const index_t*, index_t, const T*, index_t, index_t, index_t, T, T*) const override {}

 private:
  const S* data_;
  index_t stride_;
};

template <class T, class S, class I>
class SparseExamples final : public Examples<T> {
 public:
  SparseExamples(const S* data, const I* indices, const I* indptr, index_t rows, index_t cols)
      : Examples<T>(rows, cols), data_(data), indices_(indices), indptr_(indptr) {}
  bool sparse() const override { return true; }
  void gather(const index_t* which, index_t n, T* out) const override {
    std::fill(out, out + n * this->cols_, T(0));
    for (index_t i = 0; i < n; ++i)
      for (I e = indptr_[which[i]]; e < indptr_[which[i] + 1]; ++e)
        out[i * this->cols_ + indices_[e]] = static_cast<T>(data_[e]);
  }
  void forward(const index_t* which, index_t n, const T* W, index_t width, T* Z) const override {
    std::fill(Z, Z + n * width, T(0));
    for (index_t i = 0; i < n; ++i)
      for (I e = indptr_[which[i]]; e < indptr_[which[i] + 1]; ++e)
        axpy(static_cast<T>(data_[e]), W + indices_[e] * width, width, Z + i * width);
  }
  void backward(const index_t* which, index_t n, const T* D, index_t width, index_t begin, index_t end, T keep,
                T* G) const override {
    for (index_t j = 0; j < (end - begin) * width; ++j) G[j] = keep == T(0) ? T(0) : keep * G[j];
    for (index_t i = 0; i < n; ++i) {
      const I* row = indices_ + indptr_[which[i]];
      const I* stop = indices_ + indptr_[which[i] + 1];
      for (const I* e = std::lower_bound(row, stop, static_cast<I>(begin)); e < stop && *e < end; ++e)
        axpy(static_cast<T>(data_[e - indices_]), D + i * width, width, G + (*e - begin) * width);
    }
  }

 private:
  const S* data_;
  const I* indices_;
  const I* indptr_;
};

// One row of the softmax loss: delta = weight (p - e_y), returns -log p_y.
template <class T>
HINGE_HOT double softmax_row(const T* __restrict s, index_t k, index_t y, T weight, T* __restrict delta) {
  T top = s[0];
  for (index_t j = 1; j < k; ++j) top = s[j] > top ? s[j] : top;
  T total = 0;
  for (index_t j = 0; j < k; ++j) {
    delta[j] = units::exp(s[j] - top);
    total += delta[j];
  }
  const T share = weight / total;
  for (index_t j = 0; j < k; ++j) delta[j] *= share;
  delta[y] -= weight;
  return std::log(static_cast<double>(total)) - static_cast<double>(s[y] - top);
}

template <class T>
class SoftmaxCriterion final : public Criterion<T> {
 public:
  SoftmaxCriterion(const double* y, const double* c, index_t outputs) : y_(y), c_(c), outputs_(outputs) {}
  index_t outputs() const override { return outputs_; }
  double gradient(const index_t* which, index_t n, double scale, const T* s, T* delta) const override {
    double sum = 0;
    for (index_t i = 0; i < n; ++i) {
      const index_t r = which[i], at = i * outputs_;
      sum +=
          c_[r] * softmax_row(s + at, outputs_, static_cast<index_t>(y_[r]), static_cast<T>(scale * c_[r]), delta + at);
    }
    return sum;
  }

 private:
  const double *y_, *c_;
  index_t outputs_;
};

template <class T>
class OutputCriterion final : public Criterion<T> {
 public:
  OutputCriterion(std::shared_ptr<Loss> loss, const double* y, const double* c, index_t outputs)
      : loss_(std::move(loss)), y_(y), c_(c), outputs_(outputs) {}
  index_t outputs() const override { return outputs_; }
  bool whole_arrays() const override { return loss_->whole_arrays(); }
  double gradient(const index_t* which, index_t n, double scale, const T* s, T* delta) const override {
    const index_t m = n * outputs_;
    thread_local std::vector<double> room;
    room.resize(4 * m);
    double *y = room.data(), *c = y + m, *score = c + m, *u = score + m;
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < outputs_; ++j) {
        y[i * outputs_ + j] = y_[which[i] * outputs_ + j];
        c[i * outputs_ + j] = c_[which[i]];
      }
    convert(s, m, score);
    const double sum = loss_->gradient(y, score, c, u, m);
    for (index_t e = 0; e < m; ++e) delta[e] = static_cast<T>(scale * u[e]);
    return sum;
  }

 private:
  std::shared_ptr<Loss> loss_;
  const double *y_, *c_;
  index_t outputs_;
};

}  // namespace

template <class T, class S>
std::unique_ptr<Examples<T>> dense_examples(const S* data, index_t rows, index_t cols, index_t stride) {
  return std::make_unique<DenseExamples<T, S>>(data, rows, cols, stride);
}

template <class T, class S, class I>
std::unique_ptr<Examples<T>> sparse_examples(const S* data, const I* indices, const I* indptr, index_t rows,
                                             index_t cols) {
  return std::make_unique<SparseExamples<T, S, I>>(data, indices, indptr, rows, cols);
}

template <class T>
std::unique_ptr<Criterion<T>> softmax_criterion(const double* y, const double* c, index_t outputs) {
  return std::make_unique<SoftmaxCriterion<T>>(y, c, outputs);
}

template <class T>
std::unique_ptr<Criterion<T>> output_criterion(std::shared_ptr<Loss> loss, const double* y, const double* c,
                                               index_t outputs) {
  return std::make_unique<OutputCriterion<T>>(std::move(loss), y, c, outputs);
}

#define HINGE_SPARSE(T, S, I) \
  template std::unique_ptr<Examples<T>> sparse_examples<T, S, I>(const S*, const I*, const I*, index_t, index_t);
#define HINGE_DATA(T)                                                                                             \
  template std::unique_ptr<Examples<T>> dense_examples<T, float>(const float*, index_t, index_t, index_t);        \
  template std::unique_ptr<Examples<T>> dense_examples<T, double>(const double*, index_t, index_t, index_t);      \
  HINGE_SPARSE(T, float, std::int32_t)                                                                            \
  HINGE_SPARSE(T, float, std::int64_t)                                                                            \
  HINGE_SPARSE(T, double, std::int32_t)                                                                           \
  HINGE_SPARSE(T, double, std::int64_t)                                                                           \
  template std::unique_ptr<Criterion<T>> softmax_criterion<T>(const double*, const double*, index_t);             \
  template std::unique_ptr<Criterion<T>> output_criterion<T>(std::shared_ptr<Loss>, const double*, const double*, \
                                                             index_t);
HINGE_DATA(float)
HINGE_DATA(double)
#undef HINGE_DATA
#undef HINGE_SPARSE

}  // namespace hinge::network
