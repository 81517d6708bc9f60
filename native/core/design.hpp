// Design: a view of the n x d data matrix X, which the caller owns. It never copies the data.
//
// There are four storages (dense rows, dense columns, CSR, CSC) in float or double; CSR and CSC have 32- or 64-bit
// indices. Solvers use one interface with one virtual call per array, so the call costs nothing; the loops inside are
// templates on the element type. All arithmetic is in double except the BLAS products of float storage, which are
// computed in float on short blocks and summed in double.
//
// Conventions: w has d entries, z and u have n; W is d x k and Z, U are n x k, row-major; h >= 0 has n entries; G is
// d x d with both triangles filled.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/hot.hpp"
#include "core/rows.hpp"

namespace hinge {

// Selected columns of X: one contiguous column-major block (n x m), or compressed columns if X is sparse.
struct Columns {
  index_t rows = 0, cols = 0;
  bool sparse = false;
  std::vector<double> dense = {};   // rows x cols, column-major
  std::vector<index_t> start = {};  // cols + 1
  std::vector<index_t> row = {};
  std::vector<double> value = {};
  std::vector<double> square = {};  // squared norm of each column
};

// The matrix products that second-order methods need.
class Products {
 public:
  virtual ~Products() = default;
  index_t rows() const { return rows_; }
  index_t cols() const { return cols_; }

  virtual void matvec(const double* w, double* z) const = 0;   // z = X w
  virtual void rmatvec(const double* u, double* g) const = 0;  // g = X'u
  virtual void gram(const double* h, double* G) const = 0;     // G = X' diag(h) X; h may be null (all ones)

 protected:
  Products(index_t rows, index_t cols) : rows_(rows), cols_(cols) {}
  index_t rows_, cols_;
};

class Design : public Products {
 public:
  virtual bool sparse() const = 0;
  virtual index_t stored() const = 0;  // number of stored entries

  virtual void matmat(const double* W, index_t k, double* Z) const = 0;   // Z = X W
  virtual void rmatmat(const double* U, index_t k, double* G) const = 0;  // G = X'U (d x k)
  // A = [X 1 y]' diag(h) [X 1 y], (d + 2) x (d + 2): the sufficient statistics of least squares.
  virtual void moments(const double* h, const double* y, double* A) const;
  virtual void square_sums(const double* h,
                           double* out) const = 0;  // out_j = sum_i h_i x_ij^2; h may be null

  // One pass over X: for consecutive ranges of rows computes z = X w, then u = body(begin, end, z, u), then g += X'u.
  // `body` may run on several threads at once, on disjoint ranges. Storages that cannot do this in one pass take two.
  using RowBody = std::function<void(index_t begin, index_t end, const double* z, double* u)>;
  virtual void fused(const double* w, const RowBody& body, double* z, double* u, double* g) const;

  virtual Columns columns(const index_t* which, index_t m) const = 0;

  // A range of columns no two of which share a row, so that their block of any weighted Gram matrix is diagonal.
  virtual std::pair<index_t, index_t> orthogonal_block() const { return {0, 0}; }

  // Access by row; empty for column storages.
  virtual RowView row_view() const { return {}; }
  // Access by column; empty for row storages.
  virtual ColumnView column_view() const { return {}; }

 protected:
  using Products::Products;
};

template <class T>
class DenseRows;
template <class T>
class DenseCols;
template <class T, class I>
class Csr;
template <class T, class I>
class Csc;

template <class T>
std::unique_ptr<Design> dense_rows(const T* data, index_t rows, index_t cols, index_t stride);
template <class T>
std::unique_ptr<Design> dense_cols(const T* data, index_t rows, index_t cols, index_t stride);
template <class T, class I>
std::unique_ptr<Design> csr(const T* data, const I* indices, const I* indptr, index_t rows, index_t cols);
template <class T, class I>
std::unique_ptr<Design> csc(const T* data, const I* indices, const I* indptr, index_t rows, index_t cols);

}  // namespace hinge
