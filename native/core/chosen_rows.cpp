#include "core/chosen_rows.hpp"

#include <algorithm>
#include <variant>

#include "core/gram.hpp"
#include "core/row_products.hpp"

namespace hinge {
namespace {

template <class T>
class ChosenRows final : public Products {
 public:
  ChosenRows(const DenseRowView<T>& X, std::vector<index_t> which)
      : Products(static_cast<index_t>(which.size()), X.cols),
        which_(std::move(which)),
        row_{X.data, X.stride, which_.data()} {}

  void matvec(const double* w, double* z) const override { multiply_rows(row_, rows_, cols_, w, z); }
  void rmatvec(const double* u, double* g) const override { add_up_rows(row_, rows_, cols_, u, g); }
  void gram(const double* h, double* G) const override { dense_gram<T>(row_, rows_, cols_, h, G); }

 private:
  std::vector<index_t> which_;
  RowsByList<T> row_;
};

template <class T, class I>
class ChosenSparseRows final : public Products {
 public:
  ChosenSparseRows(const SparseRowView<T, I>& X, index_t cols, std::vector<index_t> which)
      : Products(static_cast<index_t>(which.size()), cols), which_(std::move(which)), X_(X) {}

  void matvec(const double* w, double* z) const override {
    const index_t parts = parts_for(rows_, 2048);
    parallel_for(parts, [&](index_t p) {
      for (index_t i = range_begin(rows_, parts, p); i < range_begin(rows_, parts, p + 1); ++i) {
        look_ahead(X_, which_.data(), i, rows_);
        z[i] = X_.dot(which_[i], w);
      }
    });
  }

  void rmatvec(const double* u, double* g) const override {
    const index_t parts = sum_parts(rows_, 2048, cols_ / 8);
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      partial[p].assign(cols_, 0.0);
      for (index_t i = range_begin(rows_, parts, p); i < range_begin(rows_, parts, p + 1); ++i) {
        look_ahead(X_, which_.data(), i, rows_);
        X_.axpy(which_[i], u[i], partial[p].data());
      }
    });
    add_parts(partial, g, cols_);
  }

  void gram(const double* h, double* G) const override {
    sparse_row_gram(X_, [&](index_t i) { return which_[i]; }, rows_, cols_, h, G);
  }

 private:
  std::vector<index_t> which_;
  SparseRowView<T, I> X_;
};

struct Choose {
  index_t cols;
  std::vector<index_t> which;
  std::unique_ptr<Products> operator()(std::monostate) { return nullptr; }
  template <class T>
  std::unique_ptr<Products> operator()(const DenseRowView<T>& rows) {
    return std::make_unique<ChosenRows<T>>(rows, std::move(which));
  }
  template <class T, class I>
  std::unique_ptr<Products> operator()(const SparseRowView<T, I>& rows) {
    return std::make_unique<ChosenSparseRows<T, I>>(rows, cols, std::move(which));
  }
};

}  // namespace

std::unique_ptr<Products> chosen_rows(const Design& X, std::vector<index_t> which) {
  return std::visit(Choose{X.cols(), std::move(which)}, X.row_view());
}

}  // namespace hinge
