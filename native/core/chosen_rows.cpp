#include "core/chosen_rows.hpp"

#include <type_traits>

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

}  // namespace

std::unique_ptr<Products> chosen_rows(const Design& X, std::vector<index_t> which) {
  const RowView view = X.row_view();
  if (const auto* rows = std::get_if<DenseRowView<double>>(&view))
    return std::make_unique<ChosenRows<double>>(*rows, std::move(which));
  if (const auto* rows = std::get_if<DenseRowView<float>>(&view))
    return std::make_unique<ChosenRows<float>>(*rows, std::move(which));
  return nullptr;
}

}  // namespace hinge
