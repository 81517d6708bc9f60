// An allocator for tables whose rows are read in random order: memory is aligned to cache lines and uses huge pages
// where the system has them, because a large table would otherwise miss the TLB at every row.
#pragma once
#include <cstddef>
#include <new>
#include <utility>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hinge {

template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::size_t huge = std::size_t{2} << 20;

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}

  static std::align_val_t alignment(std::size_t bytes) { return std::align_val_t{bytes >= 2 * huge ? huge : 64}; }

  T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    void* p = ::operator new(bytes, alignment(bytes));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (bytes >= 2 * huge) madvise(p, bytes, MADV_HUGEPAGE);  // a hint: failure costs speed only
#endif
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t n) { ::operator delete(p, alignment(n * sizeof(T))); }
  bool operator==(const AlignedAllocator&) const { return true; }
};

// The same allocator without zero initialisation: the threads of a parallel loop that fills the memory are the first to
// touch it, and one pass over it is saved.
template <class T>
struct UnsetAllocator : AlignedAllocator<T> {
  template <class U>
  struct rebind {
    using other = UnsetAllocator<U>;
  };
  UnsetAllocator() = default;
  template <class U>
  UnsetAllocator(const UnsetAllocator<U>&) {}
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Arguments>
  void construct(U* p, Arguments&&... arguments) {
    ::new (static_cast<void*>(p)) U(std::forward<Arguments>(arguments)...);
  }
};

template <class T>
using Unset = std::vector<T, UnsetAllocator<T>>;

}  // namespace hinge
