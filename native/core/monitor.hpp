// Monitor: lets a running solver check for Ctrl-C and report each iteration to the caller.
#pragma once
#include <chrono>
#include <exception>
#include <functional>

namespace hinge {

struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// One iteration as reported to the caller. `gap` is negative if the solver does not compute one.
struct Progress {
  int iteration;
  double objective;
  double gap;
};

class Monitor {
 public:
  using Interruption = std::function<bool()>;
  using Report = std::function<bool(const Progress&)>;

  explicit Monitor(Interruption interrupted = {}, Report report = {})
      : interrupted_(std::move(interrupted)), report_(std::move(report)) {}

  // Throws Interrupted after Ctrl-C; checks at most every 50 ms.
  void poll() {
    if (!interrupted_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(50)) return;
    last_ = now;
    if (interrupted_()) throw Interrupted();
  }

  // Reports an iteration; returns true if the caller wants the solver to stop.
  bool report(const Progress& progress) {
    poll();
    return report_ && report_(progress);
  }

  // The monitor of the native call that runs on this thread, if any (see parallel_for).
  static Monitor*& current() {
    thread_local Monitor* monitor = nullptr;
    return monitor;
  }

 private:
  Interruption interrupted_;
  Report report_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace hinge
