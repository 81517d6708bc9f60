// The entry into the core: f(monitor) runs without the GIL, with BLAS on one thread, and Ctrl-C interrupts it.
//
// f must not touch Python; it returns plain C++ values, and the caller builds arrays from them with the GIL
// held.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>
#include <type_traits>
#include <utility>

#include "core/monitor.hpp"

namespace hinge {

namespace nb = nanobind;

// The `report` argument from Python: None, or a function of (iteration, objective, gap) that returns True to stop.
Monitor::Report make_report(const nb::object& callback);

namespace detail {
// Calls body(f, monitor) as described above; the part common to all bindings is compiled once.
void run(void (*body)(void* f, Monitor&), void* f, Monitor::Report report);
}  // namespace detail

template <class F>
auto enter(F&& f, Monitor::Report report = {}) {
  using Result = std::invoke_result_t<F&, Monitor&>;
  if constexpr (std::is_void_v<Result>) {
    detail::run([](void* to, Monitor& m) { (*static_cast<std::remove_reference_t<F>*>(to))(m); }, &f,
                std::move(report));
  } else {
    std::optional<Result> result;
    auto keep = [&](Monitor& m) { result.emplace(f(m)); };
    detail::run([](void* to, Monitor& m) { (*static_cast<decltype(keep)*>(to))(m); }, &keep, std::move(report));
    return std::move(*result);
  }
}

}  // namespace hinge
