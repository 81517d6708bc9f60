#include "core/pool.hpp"

#include <pthread.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/monitor.hpp"

namespace hinge {
namespace {

#if defined(__x86_64__)
inline void relax() { __builtin_ia32_pause(); }
#else
inline void relax() { std::this_thread::yield(); }
#endif

// Iterations of a worker's spin before it sleeps: about 50 us, enough to bridge the serial gaps inside one
// solver.
constexpr int kSpins = 2000;

int cgroup_limit() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) {
    return std::max(1, static_cast<int>(std::ceil(std::stod(quota) / period)));
  }
  return 1 << 20;
}

int usable_cpus() {
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cpus = CPU_COUNT(&set);
#endif
  return std::max(1, std::min(cpus, cgroup_limit()));
}

thread_local bool inside_part = false;

struct InsidePart {
  bool before = inside_part;
  InsidePart() { inside_part = true; }
  ~InsidePart() { inside_part = before; }
};

struct Job {
  index_t parts = 0;
  detail::Body body{};
  std::atomic<index_t> next{0};
  std::atomic<int> workers_inside{0};
  std::atomic<bool> cancelled{false};
  std::exception_ptr error;
  std::mutex error_mutex;

  void fail(std::exception_ptr e) {
    std::lock_guard lock(error_mutex);
    if (!error) error = std::move(e);
    cancelled.store(true, std::memory_order_relaxed);
  }

  void work(Monitor* monitor) {
    while (!cancelled.load(std::memory_order_relaxed)) {
      const index_t part = next.fetch_add(1, std::memory_order_relaxed);
      if (part >= parts) return;
      try {
        {
          InsidePart inside;
          body.call(body.f, part);
        }
        if (monitor) monitor->poll();
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }
};

class Pool {
 public:
  explicit Pool(int workers) {
    threads_.reserve(workers);
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { loop(); });
  }
  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      stopping_.store(true);
    }
    wake_.notify_all();
    for (auto& t : threads_) t.join();
  }
  int workers() const { return static_cast<int>(threads_.size()); }

  void run(Job& job, Monitor* monitor) {
    {
      std::lock_guard lock(mutex_);
      job_ = &job;
      epoch_.fetch_add(1);
    }
    wake_.notify_all();
    job.work(monitor);
    {
      // From here no worker can enter the job; those inside are waited for.
      std::lock_guard lock(mutex_);
      job_ = nullptr;
    }
    while (job.workers_inside.load(std::memory_order_acquire) > 0) relax();
  }

 private:
  void loop() {
    unsigned seen = 0;
    for (;;) {
      for (int spin = 0; spin < kSpins && epoch_.load() == seen && !stopping_.load(); ++spin) relax();
      Job* job = nullptr;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_.load() || epoch_.load() != seen; });
        if (stopping_.load()) return;
        seen = epoch_.load();
        job = job_;
        if (job) job->workers_inside.fetch_add(1);
      }
      if (job) {
        job->work(nullptr);
        job->workers_inside.fetch_sub(1, std::memory_order_release);
      }
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<unsigned> epoch_{0};
  std::atomic<bool> stopping_{false};
  Job* job_ = nullptr;
};

struct State {
  std::mutex mutex;  // held by the one caller that uses the pool
  std::unique_ptr<Pool> pool;
};

std::atomic<int> requested_threads{0};
State* state = nullptr;
std::once_flag state_once;

// The child of a fork has none of the parent's threads and may have copied a locked mutex: start afresh, and
// leak the copy (joining threads that do not exist would hang).
void forget_after_fork() {
  state = new State();
  inside_part = false;
}

State& the_state() {
  std::call_once(state_once, [] {
    state = new State();
    pthread_atfork(nullptr, nullptr, forget_after_fork);
  });
  return *state;
}

}  // namespace

int num_threads() {
  static const int usable = usable_cpus();
  const int requested = requested_threads.load();
  return requested > 0 ? requested : usable;
}

void set_num_threads(int threads) { requested_threads.store(threads < 0 ? 0 : threads); }

namespace detail {

void run_parts(index_t parts, Body body) {
  Monitor* monitor = inside_part ? nullptr : Monitor::current();
  const int threads = static_cast<int>(std::min<index_t>(num_threads(), parts));
  Job job;
  job.parts = parts;
  job.body = body;
  if (threads > 1 && !inside_part) {
    State& s = the_state();
    std::unique_lock lock(s.mutex, std::try_to_lock);
    if (lock.owns_lock()) {
      if (!s.pool || s.pool->workers() != num_threads() - 1) {
        s.pool.reset();
        s.pool = std::make_unique<Pool>(num_threads() - 1);
      }
      s.pool->run(job, monitor);
      if (job.error) std::rethrow_exception(job.error);
      return;
    }
  }
  job.work(monitor);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace detail
}  // namespace hinge
