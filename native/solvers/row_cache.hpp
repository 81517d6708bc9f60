// A least-recently-used cache of kernel rows between batches, in one block of memory of bounded size.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/hot.hpp"
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace hinge {

template <class T>
class RowCache {
 public:
  // Allocates at least `least` rows of n entries each (out of n rows), and as many as fit in `bytes`.
  RowCache(index_t n, index_t least, double bytes) : stride_((n + 15) / 16 * 16), where_(n, -1) {
    const double row = static_cast<double>(stride_) * sizeof(T);
    slots_ = std::min<index_t>(n, std::max<index_t>(least, static_cast<index_t>(std::min(bytes / row, 1e9))));
    const std::size_t page = std::size_t{1} << 21;
    const std::size_t size = (static_cast<std::size_t>(slots_) * stride_ * sizeof(T) + page - 1) / page * page;
    memory_.reset(static_cast<T*>(std::aligned_alloc(page, size)));
    if (!memory_) throw std::bad_alloc();
#ifdef __linux__
    madvise(memory_.get(), size, MADV_HUGEPAGE);  // a hint: huge pages make the first access to the rows cheap
#endif
    owner_.assign(slots_, -1);
    used_.assign(slots_, -1);
  }

  // The row of a point, or null if it is not cached; marks it as used at `time`.
  T* find(index_t point, index_t time) {
    if (where_[point] < 0) return nullptr;
    used_[where_[point]] = time;
    return slot(where_[point]);
  }

  // Allocates rows for these points, evicting rows not used at `time`.
  void claim(const index_t* points, index_t m, index_t time, T** out) {
    std::vector<index_t> order;
    order.reserve(slots_);
    for (index_t s = 0; s < slots_; ++s)
      if (used_[s] != time) order.push_back(s);
    const auto older = [&](index_t a, index_t b) { return used_[a] != used_[b] ? used_[a] < used_[b] : a < b; };
    if (m < static_cast<index_t>(order.size())) std::nth_element(order.begin(), order.begin() + m, order.end(), older);
    for (index_t i = 0; i < m; ++i) {
      const index_t s = order[i];
      if (owner_[s] >= 0) where_[owner_[s]] = -1;
      owner_[s] = points[i];
      used_[s] = time;
      where_[points[i]] = s;
      out[i] = slot(s);
    }
  }

  void clear() {
    std::fill(where_.begin(), where_.end(), -1);
    std::fill(owner_.begin(), owner_.end(), -1);
    std::fill(used_.begin(), used_.end(), -1);
  }

  // All cached rows.
  std::vector<T*> rows() {
    std::vector<T*> kept;
    for (index_t s = 0; s < slots_; ++s)
      if (owner_[s] >= 0) kept.push_back(slot(s));
    return kept;
  }

  index_t slots() const { return slots_; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  T* slot(index_t s) { return memory_.get() + s * stride_; }

  index_t stride_, slots_ = 0;
  std::unique_ptr<T, Free> memory_;
  std::vector<index_t> where_, owner_, used_;
};

}  // namespace hinge
