#include "core/pool.hpp"

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/fork.hpp"
#include "core/monitor.hpp"

namespace hinge {

namespace {

// Reads up to two numbers from the first line of a file and returns how many it found. It avoids C++ streams, which
// need the locales of the C++ library that created them, and fscanf and strtol, which newer glibcs replace by functions
// that older ones lack (portable/old_glibc.cmake).
int read_numbers(const std::string& path, double* first, double* second) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (!file) return 0;
  char line[128];
  const char* text = std::fgets(line, sizeof line, file);
  std::fclose(file);
  int count = 0;
  for (double* number : {first, second}) {
    if (!text || !number) break;
    char* end = nullptr;
    *number = std::strtod(text, &end);
    if (end == text) break;
    text = end;
    ++count;
  }
  return count;
}

}  // namespace

int quota_of(const std::string& folder) {
  double quota = 0, period = 0;
  // Control groups version 2 ("max" is not a number), or version 1.
  if (read_numbers(folder + "/cpu.max", &quota, &period) != 2 &&
      (read_numbers(folder + "/cpu/cpu.cfs_quota_us", &quota, nullptr) != 1 ||
       read_numbers(folder + "/cpu/cpu.cfs_period_us", &period, nullptr) != 1))
    return kMostThreads;
  if (!(quota > 0 && period > 0)) return kMostThreads;
  return static_cast<int>(std::clamp(std::ceil(quota / period), 1.0, double{kMostThreads}));
}

namespace {

#if defined(__x86_64__)
inline void relax() { __builtin_ia32_pause(); }
#else
inline void relax() { std::this_thread::yield(); }
#endif

// How long a worker spins before it sleeps: long enough to bridge the serial sections of a solver. With more threads
// than processors no worker spins, because it would take a processor from a thread that has work.
constexpr std::chrono::microseconds kSpin{100};
// Iterations of a worker's spin between two reads of the clock, and of the caller's spin before it yields.
constexpr int kSpins = 16, kCallerSpins = 2000;
// Two cache lines of 64 bytes, because processors fetch neighbouring lines in pairs.
constexpr std::size_t kLine = 128;

// The limit set by OMP_NUM_THREADS (the first number of a list); joblib sets it in its workers.
int environment_limit() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  const double threads = text ? std::strtod(text, nullptr) : 0;
  return threads >= 1 ? static_cast<int>(std::min<double>(threads, kMostThreads)) : kMostThreads;
}

int usable_cpus() {
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cpus = CPU_COUNT(&set);
#endif
  return std::max(1, std::min({cpus, quota_of("/sys/fs/cgroup"), environment_limit()}));
}

const int usable_threads = usable_cpus();

thread_local bool inside_part = false;
std::atomic<int> forks{0};  // number of forks between the first process and this one

struct InsidePart {
  bool before = inside_part;
  InsidePart() { inside_part = true; }
  ~InsidePart() { inside_part = before; }
};

struct Job {
  index_t parts = 0;
  detail::Body body{};
  int width = 0;  // workers to which the job was offered
  alignas(kLine) std::atomic<index_t> next{0};
  alignas(kLine) std::atomic<int> finished{0};  // workers that took the job and have finished
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

// Fork and join. Each worker has a slot on its own cache lines, through which it is offered jobs; after a job it spins
// on the slot for a while and then sleeps. The caller fills the slots of as many workers as there are parts and wakes
// two of the sleeping ones; each of these wakes two more, so the caller's cost does not grow with the number of
// sleepers. When no parts are left the caller withdraws the offers that no worker has taken: it waits for workers that
// run a part, never for one that is still waking up.
class Pool {
 public:
  // Starts up to `wanted` workers; limits on memory or processes may allow fewer, or none.
  explicit Pool(int wanted)
      : wanted_(wanted), spins_(wanted < usable_threads), slots_(std::make_unique<Slot[]>(wanted)) {
    try {
      threads_.reserve(wanted);
      for (int i = 0; i < wanted; ++i) threads_.emplace_back([this, i] { loop(i); });
    } catch (const std::system_error&) {  // EAGAIN: no more threads
    } catch (const std::bad_alloc&) {
    }
    workers_.store(static_cast<int>(threads_.size()));
  }
  ~Pool() {
    stopping_.store(true);
    for (int i = 0; i < workers_.load(); ++i) {
      slots_[i].ticket.fetch_add(1);
      slots_[i].ticket.notify_one();
    }
    for (auto& t : threads_) t.join();
  }
  int wanted() const { return wanted_; }

  void run(Job& job, Monitor* monitor) {
    const int forks_at_start = forks.load();
    job.width = static_cast<int>(std::min<index_t>(workers_.load(), job.parts - 1));
    for (int i = 0; i < job.width; ++i) {
      slots_[i].offer.store(&job, std::memory_order_release);
      slots_[i].ticket.fetch_add(1);
    }
    wake(0, job.width);
    wake(1, job.width);
    job.work(monitor);
    // A callback may have forked. The child has no workers, so the parts they had started are lost.
    if (forks.load() != forks_at_start) throw std::runtime_error("the process was forked during this call; fit again");
    int taken = job.width;
    for (int i = 0; i < job.width; ++i) {
      Job* offered = &job;
      if (slots_[i].offer.compare_exchange_strong(offered, nullptr, std::memory_order_acq_rel)) --taken;
    }
    for (int spin = 0; job.finished.load(std::memory_order_acquire) < taken; ++spin) {
      if (spin < kCallerSpins) {
        relax();
      } else {
        std::this_thread::yield();
      }
    }
  }

 private:
  struct alignas(kLine) Slot {
    std::atomic<int> ticket{0};  // incremented for every offer and at the end
    std::atomic<Job*> offer{nullptr};
  };

  void wake(int i, int width) {
    if (i < width) slots_[i].ticket.notify_one();  // no system call if it does not sleep
  }

  // Returns when the ticket differs from `last_ticket`, or after kSpin.
  void spin(const Slot& slot, int last_ticket) const {
    if (!spins_) return;
    const auto end = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < kSpins; ++i, relax())
        if (slot.ticket.load(std::memory_order_relaxed) != last_ticket) return;
    } while (std::chrono::steady_clock::now() < end);
  }

  void loop(int i) {
    Slot& slot = slots_[i];
    int last_ticket = 0;
    for (;;) {
      spin(slot, last_ticket);
      slot.ticket.wait(last_ticket);
      last_ticket = slot.ticket.load();
      if (stopping_.load()) return;
      if (Job* job = slot.offer.exchange(nullptr, std::memory_order_acq_rel)) {
        wake(2 * i + 2, job->width);
        wake(2 * i + 3, job->width);
        job->work(nullptr);
        job->finished.fetch_add(1, std::memory_order_release);
      }
    }
  }

  const int wanted_;
  const bool spins_;
  std::unique_ptr<Slot[]> slots_;
  std::vector<std::thread> threads_;
  std::atomic<int> workers_{0};
  std::atomic<bool> stopping_{false};
};

struct State {
  std::mutex mutex;  // held by the one caller that uses the pool
  std::unique_ptr<Pool> pool;
};

std::atomic<int> requested_threads{0};
State* state = new State();

// The child of a fork has none of the parent's threads and may have copied a locked mutex. It starts with a new state
// and leaks the copy, because joining threads that do not exist would hang. The handler is registered when the core is
// loaded, so that it also covers a fork while another thread creates the first pool.
void forget_after_fork() {
  forks.fetch_add(1);
  state = new (std::nothrow) State();
  inside_part = false;
}

[[maybe_unused]] const int pool_forgets = at_fork(nullptr, nullptr, forget_after_fork);

}  // namespace

int num_threads() {
  const int requested = requested_threads.load();
  return requested > 0 ? requested : usable_threads;
}

int threads_here() { return inside_part ? 1 : num_threads(); }

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
