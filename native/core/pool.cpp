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
#include <new>
#include <stdexcept>
#include <system_error>
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
  double quota = 0, period = 0;  // reading "max" as a number fails, as it should
  if (v2 >> quota >> period && quota > 0 && period > 0) {
    return static_cast<int>(std::clamp(std::ceil(quota / period), 1.0, double{kMostThreads}));
  }
  return kMostThreads;
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
std::atomic<int> forks{0};  // how many forks lie between the first process and this one

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
  // Makes as many workers as there is room for: under limits of memory or processes that may be none.
  explicit Pool(int wanted) : wanted_(wanted) {
    try {
      threads_.reserve(wanted);
      for (int i = 0; i < wanted; ++i) threads_.emplace_back([this] { loop(); });
    } catch (const std::system_error&) {  // EAGAIN: no more threads
    } catch (const std::bad_alloc&) {
    }
  }
  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      stopping_.store(true);
    }
    wake_.notify_all();
    for (auto& t : threads_) t.join();
  }
  int wanted() const { return wanted_; }

  void run(Job& job, Monitor* monitor) {
    const int mine = forks.load();
    {
      std::lock_guard lock(mutex_);
      job_ = &job;
      epoch_.fetch_add(1);
    }
    wake_.notify_all();
    job.work(monitor);
    // A callback may have forked: in the child the workers, and what they had begun, do not exist.
    if (forks.load() != mine) throw std::runtime_error("the process was forked during this call; fit again");
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

  const int wanted_;
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
const int usable_threads = usable_cpus();
State* state = new State();

// The child of a fork has none of the parent's threads and may have copied a locked mutex: start afresh, and leak the
// copy (joining threads that do not exist would hang). The handler is registered when the core is loaded: a fork while
// another thread makes the first pool finds it in place.
void forget_after_fork() {
  forks.fetch_add(1);
  state = new (std::nothrow) State();
  inside_part = false;
}

[[maybe_unused]] const int pool_forgets = pthread_atfork(nullptr, nullptr, forget_after_fork);

}  // namespace

int num_threads() {
  const int requested = requested_threads.load();
  return requested > 0 ? requested : usable_threads;
}

void set_num_threads(int threads) { requested_threads.store(std::clamp(threads, 0, kMostThreads)); }

namespace detail {

void run_parts(index_t parts, Body body) {
  Monitor* monitor = inside_part ? nullptr : Monitor::current();
  const int threads = static_cast<int>(std::min<index_t>(num_threads(), parts));
  Job job;
  job.parts = parts;
  job.body = body;
  if (threads > 1 && !inside_part && state) {
    State& s = *state;
    std::unique_lock lock(s.mutex, std::try_to_lock);
    if (lock.owns_lock()) {
      if (const int wanted = num_threads() - 1; !s.pool || s.pool->wanted() != wanted) {
        s.pool.reset();
        s.pool = std::make_unique<Pool>(wanted);
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
