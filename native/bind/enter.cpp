#include "bind/enter.hpp"

#include "core/blas.hpp"

namespace hinge {

Monitor::Report make_report(const nb::object& callback) {
  if (callback.is_none()) return {};
  return [callback = callback.ptr()](const Progress& p) {  // the caller's argument keeps the callback alive
    nb::gil_scoped_acquire gil;
    return nb::cast<bool>(nb::handle(callback)(p.iteration, p.objective, p.gap));
  };
}

namespace detail {

void run(void (*body)(void* f, Monitor&), void* f, Monitor::Report report) {
  const auto interrupted = [] {
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
  };
  Monitor monitor(interrupted, std::move(report));
  try {
    nb::gil_scoped_release nogil;
    blas::SerialBlas serial;
    struct Current {
      Monitor* before = Monitor::current();
      explicit Current(Monitor* m) { Monitor::current() = m; }
      ~Current() { Monitor::current() = before; }
    } current(&monitor);
    body(f, monitor);
  } catch (const Interrupted&) {
    throw nb::python_error();  // PyErr_CheckSignals has set KeyboardInterrupt
  }
}

}  // namespace detail
}  // namespace hinge
