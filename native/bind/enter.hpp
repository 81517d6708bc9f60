// The way into the core: f(monitor) runs without the GIL, with BLAS on one thread, watched for Ctrl-C.
//
// f must not touch Python; it returns plain C++ values, and the caller builds arrays from them with the GIL
// held.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>
#include <utility>

#include "core/blas.hpp"
#include "core/monitor.hpp"

namespace hinge {

namespace nb = nanobind;

// What `report` is given from Python: None, or a function of (iteration, objective, gap) that returns True to
// stop.
inline Monitor::Report make_report(const nb::object& callback) {
  if (callback.is_none()) return {};
  return [callback = callback.ptr()](const Progress& p) {  // the caller's argument keeps it alive
    nb::gil_scoped_acquire gil;
    return nb::cast<bool>(nb::handle(callback)(p.iteration, p.objective, p.gap));
  };
}

template <class F>
auto enter(F&& f, Monitor::Report report = {}) {
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
    return f(monitor);
  } catch (const Interrupted&) {
    throw nb::python_error();  // PyErr_CheckSignals has set KeyboardInterrupt
  }
}

}  // namespace hinge
