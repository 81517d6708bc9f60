#include <chrono>
// Threads, BLAS pointers and views of data.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "core/blas.hpp"
#include "core/cholesky.hpp"
#include "core/design.hpp"
#include "core/design_coded.hpp"
#include "core/finite.hpp"
#include "core/pool.hpp"

namespace hinge {
namespace {

using namespace nb::literals;

using Writable = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

index_t order(const Writable& square) {
  expect(square.shape(0) == square.shape(1), "the matrix must be square");
  return size_of(square);
}

// SciPy exports C pointers in capsules whose name is the C signature.
void* capsule_pointer(const nb::dict& table, const char* name) {
  nb::handle capsule = table[name];
  return PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
}

void set_blas(const nb::dict& blas_capi, const nb::dict& lapack_capi, std::uintptr_t set_threads,
              std::uintptr_t get_threads) {
  auto& t = blas::table();
  const auto take = [](auto& slot, const nb::dict& table, const char* name) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(capsule_pointer(table, name));
  };
  take(t.dgemm, blas_capi, "dgemm");
  take(t.sgemm, blas_capi, "sgemm");
  take(t.dsyrk, blas_capi, "dsyrk");
  take(t.ssyrk, blas_capi, "ssyrk");
  take(t.dtrsm, blas_capi, "dtrsm");
  take(t.dtrsv, blas_capi, "dtrsv");
  take(t.dpotrf, lapack_capi, "dpotrf");
  take(t.dpotrs, lapack_capi, "dpotrs");
  t.set_threads = reinterpret_cast<void (*)(int)>(set_threads);
  t.get_threads = reinterpret_cast<int (*)()>(get_threads);
}

template <class T>
void bind_dense(nb::module_& m) {
  using Rows = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
  m.def(
      "dense",
      [](Rows x) {
        const auto r = static_cast<index_t>(x.shape(0)), c = static_cast<index_t>(x.shape(1));
        if (x.stride(1) == 1 || c == 1) return dense_rows<T>(x.data(), r, c, r > 1 ? x.stride(0) : c);
        if (x.stride(0) == 1 || r == 1) return dense_cols<T>(x.data(), r, c, x.stride(1));
        throw nb::value_error("X must be contiguous along rows or along columns");
      },
      "x"_a.noconvert(), nb::keep_alive<0, 1>());
}

template <class T>
void bind_finite(nb::module_& m) {
  m.def(
      "all_finite",
      [](In1<T> x) { return enter([&](Monitor&) { return all_finite(x.data(), static_cast<index_t>(x.shape(0))); }); },
      "x"_a.noconvert());
}

// The state of compressed indices: 0 invalid, 1 inside the matrix but unsorted or repeated, 2 canonical.
template <class I>
void bind_compressed(nb::module_& m) {
  m.def(
      "check_compressed",
      [](In1<I> indptr, In1<I> indices, index_t major, index_t minor) {
        if (static_cast<index_t>(indptr.shape(0)) != major + 1) return 0;
        return enter([&](Monitor&) {
          if (!rising(indptr.data(), major)) return 0;
          if (static_cast<index_t>(indptr.data()[major]) > static_cast<index_t>(indices.shape(0))) return 0;
          return static_cast<int>(check_compressed(indptr.data(), major, indices.data(), minor));
        });
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "major"_a, "minor"_a);
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
  m.def(
      "csr",
      [](In1<T> data, In1<I> indices, In1<I> indptr, index_t rows, index_t cols) {
        return csr<T, I>(data.data(), indices.data(), indptr.data(), rows, cols);
      },
      "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "rows"_a, "cols"_a, nb::keep_alive<0, 1>(),
      nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>());
  m.def(
      "csc",
      [](In1<T> data, In1<I> indices, In1<I> indptr, index_t rows, index_t cols) {
        return csc<T, I>(data.data(), indices.data(), indptr.data(), rows, cols);
      },
      "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "rows"_a, "cols"_a, nb::keep_alive<0, 1>(),
      nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>());
}

}  // namespace

void bind_core(nb::module_& m) {
  m.def("num_threads", &num_threads);
  m.def("quota_of", &quota_of, "folder"_a);
  // A context manager for SciPy calls on small matrices: `with SerialBlas():`.
  struct SerialBlock {
    std::optional<blas::SerialBlas> serial;
  };
  nb::class_<SerialBlock>(m, "SerialBlas")
      .def(nb::init<>())
      .def("__enter__", [](SerialBlock& b) { b.serial.emplace(); })
      .def("__exit__", [](SerialBlock& b, nb::args) { b.serial.reset(); });
  m.def("set_num_threads", &set_num_threads, "threads"_a);
  // Seconds of one parallel_for whose parts add `work` numbers each; the first calls, which start the workers, are not
  // timed.
  m.def(
      "time_parallel_for",
      [](index_t parts, index_t work, index_t repeats) {
        std::vector<double> sums(parts);
        const auto call = [&] {
          parallel_for(parts, [&](index_t part) {
            double sum = 0;
            for (index_t k = 0; k < work; ++k) sum += 1.0 / static_cast<double>(k + 1);
            sums[part] = sum;
          });
        };
        nb::gil_scoped_release nogil;
        for (int k = 0; k < 50; ++k) call();
        const auto began = std::chrono::steady_clock::now();
        for (index_t k = 0; k < repeats; ++k) call();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() / repeats;
      },
      "parts"_a, "work"_a, "repeats"_a);
  m.def("set_blas", &set_blas);
  // K = (K + K') / 2 for a square K, in place, tile by tile.
  m.def(
      "symmetrise",
      [](Writable K) {
        const index_t n = order(K), tile = 64, tiles = (n + tile - 1) / tile;
        double* k = K.data();
        enter([&](Monitor&) {
          parallel_for(tiles, [&](index_t p) {
            const index_t a = tiles - 1 - p;  // the longest rows of tiles first
            for (index_t b = 0; b <= a; ++b)
              for (index_t i = a * tile; i < std::min(n, (a + 1) * tile); ++i)
                for (index_t j = b * tile; j < std::min(i, (b + 1) * tile); ++j)
                  k[i * n + j] = k[j * n + i] = 0.5 * (k[i * n + j] + k[j * n + i]);
          });
        });
      },
      "K"_a.noconvert());

  // The Cholesky factor of a symmetric matrix in its upper triangle (by rows: A = U'U), in place; the strict lower
  // triangle is unchanged. False if the matrix is not positive definite.
  m.def(
      "cholesky",
      [](Writable A) {
        const index_t n = order(A);
        return enter([&](Monitor&) { return cholesky(n, A.data(), n); });
      },
      "A"_a.noconvert());
  // B = A^-1 B by that factor, in place; every row of B is one right-hand side.
  m.def(
      "cholesky_solve",
      [](In2<double> factor, Writable B) {
        const index_t n = size_of(factor);
        expect(static_cast<index_t>(factor.shape(1)) == n && static_cast<index_t>(B.shape(1)) == n,
               "the factor must be square, with a column for each column of B");
        enter([&](Monitor&) { cholesky_solve(n, factor.data(), n, size_of(B), B.data()); });
      },
      "factor"_a.noconvert(), "B"_a.noconvert());

  nb::class_<Design>(m, "Design")
      .def_prop_ro("shape", [](const Design& x) { return nb::make_tuple(x.rows(), x.cols()); })
      .def_prop_ro("sparse", &Design::sparse)
      .def_prop_ro("stored", &Design::stored)
      .def_prop_ro("has_rows", [](const Design& x) { return x.row_view().index() != 0; })
      .def(
          "matvec",
          [](const Design& x, Vector w) {
            expect(static_cast<index_t>(w.shape(0)) == x.cols(), "w must have one entry per column of X");
            return own(enter([&](Monitor&) {
              std::vector<double> z(x.rows());
              x.matvec(w.data(), z.data());
              return z;
            }));
          },
          "w"_a.noconvert())
      .def(
          "rmatvec",
          [](const Design& x, Vector u) {
            expect(static_cast<index_t>(u.shape(0)) == x.rows(), "u must have one entry per row of X");
            return own(enter([&](Monitor&) {
              std::vector<double> g(x.cols());
              x.rmatvec(u.data(), g.data());
              return g;
            }));
          },
          "u"_a.noconvert())
      .def(
          "matvec_and_rmatvec",  // X w and X'u in one pass over X
          [](const Design& x, Vector w, Vector u) {
            expect(static_cast<index_t>(w.shape(0)) == x.cols(), "w must have one entry per column of X");
            expect(static_cast<index_t>(u.shape(0)) == x.rows(), "u must have one entry per row of X");
            std::vector<double> z(x.rows()), g(x.cols()), given(u.data(), u.data() + u.shape(0));
            enter([&](Monitor&) {
              x.fused(w.data(), [](index_t, index_t, const double*, double*) {}, z.data(), given.data(), g.data());
            });
            return nb::make_tuple(own(std::move(z)), own(std::move(g)));
          },
          "w"_a.noconvert(), "u"_a.noconvert())
      .def(
          "matmat",
          [](const Design& x, Matrix W) {
            expect(static_cast<index_t>(W.shape(0)) == x.cols(), "W must have one row per column of X");
            const auto k = static_cast<index_t>(W.shape(1));
            return own(enter([&](Monitor&) {
                         std::vector<double> Z(x.rows() * k);
                         x.matmat(W.data(), k, Z.data());
                         return Z;
                       }),
                       x.rows(), k);
          },
          "W"_a.noconvert())
      .def(
          "rmatmat",
          [](const Design& x, Matrix U) {
            expect(static_cast<index_t>(U.shape(0)) == x.rows(), "U must have one row per row of X");
            const auto k = static_cast<index_t>(U.shape(1));
            return own(enter([&](Monitor&) {
                         std::vector<double> G(x.cols() * k);
                         x.rmatmat(U.data(), k, G.data());
                         return G;
                       }),
                       x.cols(), k);
          },
          "U"_a.noconvert())
      .def(
          "gram",
          [](const Design& x, std::optional<Vector> h) {
            if (h) expect(static_cast<index_t>(h->shape(0)) == x.rows(), "h must have one entry per row of X");
            return own(enter([&](Monitor&) {
                         std::vector<double> G(x.cols() * x.cols());
                         x.gram(h ? h->data() : nullptr, G.data());
                         return G;
                       }),
                       x.cols(), x.cols());
          },
          "h"_a.noconvert() = nb::none())
      .def(
          "moments",
          [](const Design& x, Vector h, Vector y) {
            for (const Vector& v : {h, y})
              expect(static_cast<index_t>(v.shape(0)) == x.rows(), "h and y must have one entry per row of X");
            return own(enter([&](Monitor&) {
                         std::vector<double> A((x.cols() + 2) * (x.cols() + 2));
                         x.moments(h.data(), y.data(), A.data());
                         return A;
                       }),
                       x.cols() + 2, x.cols() + 2);
          },
          "h"_a.noconvert(), "y"_a.noconvert())
      .def(
          "columns",
          [](const Design& x, In1<index_t> which) {
            const auto m = static_cast<index_t>(which.shape(0));
            for (index_t j = 0; j < m; ++j)
              expect(which.data()[j] >= 0 && which.data()[j] < x.cols(), "a column number is out of range");
            return own(enter([&](Monitor&) {
                         const Columns c = x.columns(which.data(), m);
                         std::vector<double> out(x.rows() * m, 0.0);  // row-major
                         for (index_t j = 0; j < m; ++j) {
                           if (c.sparse)
                             for (index_t e = c.start[j]; e < c.start[j + 1]; ++e) out[c.row[e] * m + j] = c.value[e];
                           else
                             for (index_t i = 0; i < x.rows(); ++i) out[i * m + j] = c.dense[j * x.rows() + i];
                         }
                         return out;
                       }),
                       x.rows(), m);
          },
          "which"_a.noconvert())
      .def(
          "square_sums",
          [](const Design& x, std::optional<Vector> h) {
            if (h) expect(static_cast<index_t>(h->shape(0)) == x.rows(), "h must have one entry per row of X");
            return own(enter([&](Monitor&) {
              std::vector<double> s(x.cols());
              x.square_sums(h ? h->data() : nullptr, s.data());
              return s;
            }));
          },
          "h"_a.noconvert() = nb::none());

  // A dense or sparse block and columns of codes, each below its number of levels.
  m.def(
      "coded",
      [](std::shared_ptr<Design> dense, const std::vector<In1<std::int32_t>>& codes,
         const std::vector<index_t>& levels) {
        expect(codes.size() == levels.size() && !codes.empty(), "one number of levels is needed per column of codes");
        std::vector<CodeColumn> columns;
        for (std::size_t q = 0; q < codes.size(); ++q) {
          const auto n = static_cast<index_t>(codes[q].shape(0));
          expect(n == dense->rows(), "there must be one code per row");
          const std::int32_t* code = codes[q].data();
          const bool inside = enter([&](Monitor&) {
            return std::all_of(code, code + n, [&](std::int32_t c) { return static_cast<index_t>(c) < levels[q]; });
          });
          expect(inside, "a code is not below the number of levels");
          columns.push_back({code, levels[q]});
        }
        return coded(std::move(dense), std::move(columns));
      },
      "dense"_a, "codes"_a, "levels"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>());

  bind_dense<float>(m);
  bind_dense<double>(m);
  bind_finite<float>(m);
  bind_finite<double>(m);
  bind_compressed<std::int32_t>(m);
  bind_compressed<std::int64_t>(m);
  bind_sparse<float, std::int32_t>(m);
  bind_sparse<float, std::int64_t>(m);
  bind_sparse<double, std::int32_t>(m);
  bind_sparse<double, std::int64_t>(m);
}

}  // namespace hinge
