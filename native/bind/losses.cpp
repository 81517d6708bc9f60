// Losses: the registered ones by name, and losses written in Python.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "core/pool.hpp"
#include "core/vec.hpp"
#include "problem/loss.hpp"
#include "problem/softmax.hpp"

namespace hinge {
namespace {

using namespace nb::literals;

// Calls value(y, s), gradient(y, s) and hessian(y, s) of a Python object with NumPy arrays of all examples.
class PythonLoss final : public Loss {
 public:
  explicit PythonLoss(nb::object loss)
      : loss_(std::move(loss)),
        twice_differentiable_(nb::cast<bool>(loss_.attr("twice_differentiable"))),
        conjugate_(nb::cast<bool>(loss_.attr("has_conjugate"))) {}
  ~PythonLoss() override {
    nb::gil_scoped_acquire gil;
    loss_.reset();
  }

  bool whole_arrays() const override { return true; }
  bool has_conjugate() const override { return conjugate_; }

  double value(const double* y, const double* s, const double* c, index_t n) const override {
    std::vector<double> l(n);
    call("value", y, s, l.data(), n);
    return weighted(l, c);
  }
  double gradient(const double* y, const double* s, const double* c, double* u, index_t n) const override {
    gradients(y, s, c, u, n);
    return value(y, s, c, n);
  }
  void gradients(const double* y, const double* s, const double* c, double* u, index_t n) const override {
    call("gradient", y, s, u, n);
    for (index_t i = 0; i < n; ++i) u[i] *= c[i];
  }
  double curvature(const double* y, const double* s, const double* c, double* u, double* h, index_t n) const override {
    if (twice_differentiable_) {
      call("hessian", y, s, h, n);
      for (index_t i = 0; i < n; ++i) h[i] *= c[i];
    } else {
      std::fill(h, h + n, 0.0);
    }
    return gradient(y, s, c, u, n);
  }
  double conjugate(const double* y, const double* u, const double* c, index_t n) const override {
    std::vector<double> scaled(n), l(n);
    for (index_t i = 0; i < n; ++i) scaled[i] = c[i] > 0 ? u[i] / c[i] : 0.0;
    call("conjugate", y, scaled.data(), l.data(), n);
    return weighted(l, c);
  }

 private:
  static double weighted(const std::vector<double>& l, const double* c) {
    double total = 0;
    for (std::size_t i = 0; i < l.size(); ++i) total += c[i] * l[i];
    return total;
  }

  void call(const char* method, const double* y, const double* s, double* out, index_t n) const {
    nb::gil_scoped_acquire gil;
    using View = nb::ndarray<nb::numpy, const double, nb::ndim<1>>;
    const auto size = static_cast<std::size_t>(n);
    const nb::object none = nb::none();
    const nb::object result = loss_.attr(method)(nb::cast(View(y, {size}, none)), nb::cast(View(s, {size}, none)));
    const nb::object array = nb::module_::import_("numpy").attr("ascontiguousarray")(result, "dtype"_a = "float64");
    const auto view = nb::cast<Vector>(array);
    if (view.shape(0) != size)
      throw std::length_error(std::string("the loss's ") + method + " must return one number per example");
    std::copy(view.data(), view.data() + n, out);
  }

  nb::object loss_;
  bool twice_differentiable_, conjugate_;
};

template <class... Vs>
void same_length(const Vector& first, const Vs&... rest) {
  if (((rest.shape(0) != first.shape(0)) || ...)) throw nb::value_error("the arrays must have the same length");
}

// Sums f(begin, count) over pieces of the examples in order; one piece for a loss that needs complete arrays.
template <class F>
double sum_over(const Loss& loss, std::size_t size, const F& f) {
  const auto n = static_cast<index_t>(size);
  const index_t parts = loss.whole_arrays() ? 1 : parts_for(n, 4096);
  std::vector<double> sums(parts);
  parallel_for(parts, [&](index_t p) {
    const index_t b = range_begin(n, parts, p);
    sums[p] = f(b, range_begin(n, parts, p + 1) - b);
  });
  double total = 0;
  for (double s : sums) total += s;
  return total;
}

}  // namespace

void bind_losses(nb::module_& m) {
  m.def("registered_losses", &registered_losses);
  m.def("loss", &make_loss, "name"_a, "params"_a);
  m.def("python_loss",
        [](nb::object loss) -> std::unique_ptr<Loss> { return std::make_unique<PythonLoss>(std::move(loss)); });

  // Dual variables u + shift clipped to [lower, upper]: their weighted sum, and the weight of those strictly inside.
  m.def(
      "clipped_sums",
      [](Vector u, double shift, Vector lower, Vector upper, Vector c) {
        same_length(u, lower, upper, c);
        const auto n = static_cast<index_t>(u.shape(0));
        return enter([&](Monitor&) {
          const index_t parts = parts_for(n, 4096);
          std::vector<std::pair<double, double>> sums(parts);
          parallel_for(parts, [&](index_t p) {
            double total = 0, inside = 0;
            for (index_t i = range_begin(n, parts, p); i < range_begin(n, parts, p + 1); ++i) {
              const double moved = u.data()[i] + shift, low = lower.data()[i], high = upper.data()[i];
              total += c.data()[i] * std::min(std::max(moved, low), high);
              inside += moved > low && moved < high ? c.data()[i] : 0.0;
            }
            sums[p] = {total, inside};
          });
          std::pair<double, double> all{0, 0};
          for (const auto& [total, inside] : sums) all.first += total, all.second += inside;
          return all;
        });
      },
      "u"_a.noconvert(), "shift"_a, "lower"_a.noconvert(), "upper"_a.noconvert(), "c"_a.noconvert());
  // The weighted sum of the softmax loss and c (p - e_y); labels must lie in [0, k).
  m.def(
      "softmax_gradient",
      [](Vector y, Matrix S, Vector c) {
        same_length(y, c);
        const auto n = static_cast<index_t>(S.shape(0)), k = static_cast<index_t>(S.shape(1));
        if (static_cast<index_t>(y.shape(0)) != n) throw nb::value_error("S must have one row per label");
        for (index_t i = 0; i < n; ++i)
          if (!(y.data()[i] >= 0 && y.data()[i] < static_cast<double>(k)))
            throw nb::value_error("a label is out of range");
        std::vector<double> U(n * k);
        const double value =
            enter([&](Monitor&) { return softmax_gradient(y.data(), S.data(), c.data(), n, k, U.data()); });
        return nb::make_tuple(value, own(std::move(U), n, k));
      },
      "y"_a.noconvert(), "S"_a.noconvert(), "c"_a.noconvert());
  m.def(
      "softmax_rows",
      [](Matrix S) {
        const auto n = static_cast<index_t>(S.shape(0)), k = static_cast<index_t>(S.shape(1));
        std::vector<double> P(n * k);
        enter([&](Monitor&) {
          softmax_rows(S.data(), n, k, P.data());
          return 0;
        });
        return own(std::move(P), n, k);
      },
      "S"_a.noconvert());

  nb::class_<Loss>(m, "Loss")
      .def(
          "pointwise",
          [](const Loss& loss, int which, Vector y, Vector s) {
            if (which < 0 || which > 3) throw nb::value_error("which must be 0, 1, 2 or 3");
            same_length(y, s);
            return own(enter([&](Monitor&) {
              std::vector<double> out(s.shape(0));
              loss.pointwise(which, y.data(), s.data(), out.data(), static_cast<index_t>(out.size()));
              return out;
            }));
          },
          "which"_a, "y"_a.noconvert(), "s"_a.noconvert())
      .def(
          "value",
          [](const Loss& loss, Vector y, Vector s, Vector c) {
            same_length(y, s, c);
            return enter([&](Monitor&) {
              return sum_over(loss, y.shape(0), [&](index_t b, index_t n) {
                return loss.value(y.data() + b, s.data() + b, c.data() + b, n);
              });
            });
          },
          "y"_a.noconvert(), "s"_a.noconvert(), "c"_a.noconvert())
      .def(
          "gradient",  // the weighted sum of the loss, and c l'
          [](const Loss& loss, Vector y, Vector s, Vector c) {
            same_length(y, s, c);
            std::vector<double> u(y.shape(0));
            const double value = enter([&](Monitor&) {
              return sum_over(loss, y.shape(0), [&](index_t b, index_t n) {
                return loss.gradient(y.data() + b, s.data() + b, c.data() + b, u.data() + b, n);
              });
            });
            return nb::make_tuple(value, own(std::move(u)));
          },
          "y"_a.noconvert(), "s"_a.noconvert(), "c"_a.noconvert())
      .def(
          "gradients",  // l', unweighted
          [](const Loss& loss, Vector y, Vector s) {
            same_length(y, s);
            std::vector<double> u(y.shape(0));
            const std::vector<double> ones(y.shape(0), 1.0);
            enter([&](Monitor&) {
              return sum_over(loss, y.shape(0), [&](index_t b, index_t n) {
                loss.gradients(y.data() + b, s.data() + b, ones.data() + b, u.data() + b, n);
                return 0.0;
              });
            });
            return own(std::move(u));
          },
          "y"_a.noconvert(), "s"_a.noconvert())
      .def(
          "conjugate",  // sum of c l*(y, u / c) for weighted dual variables u
          [](const Loss& loss, Vector y, Vector u, Vector c) {
            same_length(y, u, c);
            return enter([&](Monitor&) {
              return sum_over(loss, y.shape(0), [&](index_t b, index_t n) {
                return loss.conjugate(y.data() + b, u.data() + b, c.data() + b, n);
              });
            });
          },
          "y"_a.noconvert(), "u"_a.noconvert(), "c"_a.noconvert())
      .def(
          "derivative_sums",  // (sum c l', sum c l'')
          [](const Loss& loss, Vector y, Vector s, Vector c) {
            same_length(y, s, c);
            std::vector<double> u(y.shape(0)), h(y.shape(0));
            return enter([&](Monitor&) {
              sum_over(loss, y.shape(0), [&](index_t b, index_t n) {
                return loss.curvature(y.data() + b, s.data() + b, c.data() + b, u.data() + b, h.data() + b, n);
              });
              return std::pair(vec::sum(u.data(), static_cast<index_t>(u.size())),
                               vec::sum(h.data(), static_cast<index_t>(h.size())));
            });
          },
          "y"_a.noconvert(), "s"_a.noconvert(), "c"_a.noconvert());
}

}  // namespace hinge
