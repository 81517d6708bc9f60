#include "problem/loss.hpp"

#include "problem/registry.hpp"

namespace hinge {
namespace {

template <class L>
HINGE_HOT double sum_value(const L& l, const double* __restrict y, const double* __restrict s,
                           const double* __restrict c, index_t n) {
  double total = 0;
  for (index_t i = 0; i < n; ++i) total += c[i] * l.value(y[i], s[i]);
  return total;
}

template <class L>
HINGE_HOT double sum_gradient(const L& l, const double* __restrict y, const double* __restrict s,
                              const double* __restrict c, double* __restrict u, index_t n) {
  double total = 0;
  for (index_t i = 0; i < n; ++i) {
    total += c[i] * l.value(y[i], s[i]);
    u[i] = c[i] * l.d1(y[i], s[i]);
  }
  return total;
}

template <class L>
HINGE_HOT void all_slopes(const L& l, const double* __restrict y, const double* __restrict s,
                          const double* __restrict c, double* __restrict u, index_t n) {
  for (index_t i = 0; i < n; ++i) u[i] = c[i] * l.d1(y[i], s[i]);
}

template <class L>
HINGE_HOT double sum_curvature(const L& l, const double* __restrict y, const double* __restrict s,
                               const double* __restrict c, double* __restrict u, double* __restrict h, index_t n) {
  double total = 0;
  for (index_t i = 0; i < n; ++i) {
    total += c[i] * l.value(y[i], s[i]);
    u[i] = c[i] * l.d1(y[i], s[i]);
    h[i] = c[i] * l.d2(y[i], s[i]);
  }
  return total;
}

template <class L>
HINGE_HOT double sum_conjugate(const L& l, const double* __restrict y, const double* __restrict u,
                               const double* __restrict c, index_t n) {
  double total = 0;
  for (index_t i = 0; i < n; ++i) {
    const double term = c[i] * l.conj(y[i], c[i] > 0 ? u[i] / c[i] : 0.0);
    total += c[i] > 0 ? term : 0.0;
  }
  return total;
}

template <class L>
class Arrays final : public Loss {
 public:
  explicit Arrays(const L& loss) : l_(loss) {}
  double value(const double* y, const double* s, const double* c, index_t n) const override {
    return sum_value(l_, y, s, c, n);
  }
  double gradient(const double* y, const double* s, const double* c, double* u, index_t n) const override {
    return sum_gradient(l_, y, s, c, u, n);
  }
  void gradients(const double* y, const double* s, const double* c, double* u, index_t n) const override {
    all_slopes(l_, y, s, c, u, n);
  }
  double curvature(const double* y, const double* s, const double* c, double* u, double* h, index_t n) const override {
    return sum_curvature(l_, y, s, c, u, h, n);
  }
  double conjugate(const double* y, const double* u, const double* c, index_t n) const override {
    return sum_conjugate(l_, y, u, c, n);
  }

 private:
  L l_;
};

template <class L>
std::unique_ptr<Loss> construct(const std::vector<double>& params) {
  L loss{};
  if constexpr (L::params.size() == 1) loss = L{params.at(0)};
  return std::make_unique<Arrays<L>>(loss);
}

template <class... Ls>
std::unique_ptr<Loss> find(List<Ls...>, const std::string& name, const std::vector<double>& params) {
  std::unique_ptr<Loss> found;
  ((name == Ls::name ? static_cast<void>(found = construct<Ls>(params)) : static_cast<void>(0)), ...);
  return found;
}

template <class... Ls>
auto names(List<Ls...>) {
  return std::vector<std::pair<std::string, std::vector<std::string>>>{
      {Ls::name, std::vector<std::string>(Ls::params.begin(), Ls::params.end())}...};
}

}  // namespace

void Loss::pointwise(int which, const double* y, const double* s, double* out, index_t n) const {
  const double one = 1;
  double gradient_unused = 0;
  for (index_t i = 0; i < n; ++i) {
    switch (which) {
      case 0:
        out[i] = value(y + i, s + i, &one, 1);
        break;
      case 1:
        gradients(y + i, s + i, &one, out + i, 1);
        break;
      case 2:
        curvature(y + i, s + i, &one, &gradient_unused, out + i, 1);
        break;
      default:
        out[i] = conjugate(y + i, s + i, &one, 1);
    }
  }
}

std::vector<std::pair<std::string, std::vector<std::string>>> registered_losses() { return names(Losses{}); }

std::unique_ptr<Loss> make_loss(const std::string& name, const std::vector<double>& params) {
  return find(Losses{}, name, params);
}

}  // namespace hinge
