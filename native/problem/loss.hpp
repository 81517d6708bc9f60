// The loss interface of the solvers: one virtual call per array of samples.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/hot.hpp"

namespace hinge {

class Loss {
 public:
  virtual ~Loss() = default;
  // All of these work on n samples with weights c >= 0, which sum to one over the data set.
  virtual double value(const double* y, const double* s, const double* c, index_t n) const = 0;  // sum c l
  // u = c l', returns sum c l
  virtual double gradient(const double* y, const double* s, const double* c, double* u, index_t n) const = 0;
  // u = c l'
  virtual void gradients(const double* y, const double* s, const double* c, double* u, index_t n) const = 0;
  // u = c l', h = c l'', returns sum c l
  virtual double curvature(const double* y, const double* s, const double* c, double* u, double* h,
                           index_t n) const = 0;
  // sum c l*(y, u / c) for u as `gradient` writes it
  virtual double conjugate(const double* y, const double* u, const double* c, index_t n) const = 0;
  // Pointwise arrays, unweighted, for the tests: which = 0 value, 1 d1, 2 d2, 3 conjugate (then s is u). Calls the
  // functions above for one sample at a time.
  virtual void pointwise(int which, const double* y, const double* s, double* out, index_t n) const;
  // A loss written in Python may lack a conjugate; solvers then stop on stationarity instead of a gap.
  virtual bool has_conjugate() const { return true; }
  // A loss written in Python is called once per array, not once per block.
  virtual bool whole_arrays() const { return false; }
};

// The registered losses with the names of their parameters, and the loss of a given name (null if there is none).
std::vector<std::pair<std::string, std::vector<std::string>>> registered_losses();
std::unique_ptr<Loss> make_loss(const std::string& name, const std::vector<double>& params);

}  // namespace hinge
