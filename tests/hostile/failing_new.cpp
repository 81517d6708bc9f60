// A library to preload: while it is armed, the k-th call of operator new throws std::bad_alloc, once or from then on.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> left{-1};       // calls that still succeed; negative: not armed
std::atomic<bool> for_ever{false};
std::atomic<long> made{0};

void* take(std::size_t size, std::size_t alignment) {
  made.fetch_add(1, std::memory_order_relaxed);
  long now = left.load();
  while (now >= 0) {
    if (now == 0 && for_ever.load()) return nullptr;
    if (left.compare_exchange_weak(now, now - 1)) {
      if (now == 0) return nullptr;
      break;
    }
  }
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size ? size : 1);
  void* p = nullptr;
  return posix_memalign(&p, alignment, size ? size : 1) == 0 ? p : nullptr;
}

void* take_or_throw(std::size_t size, std::size_t alignment) {
  if (void* p = take(size, alignment)) return p;
  throw std::bad_alloc();
}
}  // namespace

extern "C" void hostile_arm(long calls, int again) {
  for_ever.store(again != 0);
  left.store(calls);
}
extern "C" long hostile_made() { return made.load(); }

void* operator new(std::size_t n) { return take_or_throw(n, 1); }
void* operator new[](std::size_t n) { return take_or_throw(n, 1); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return take(n, 1); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return take(n, 1); }
void* operator new(std::size_t n, std::align_val_t a) { return take_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return take_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept { return take(n, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
