// Visits rows in random order at nearly the speed of consecutive rows.
//
// A random access costs a page-table walk and a miss for every cache line of the row. Prefetching hides the misses but
// not the walks, and both together can take longer than the work on the row. Therefore, while one thread works on a
// block of rows, another copies the rows of the next block into contiguous memory and does the work that belongs before
// and after a block. The results are the same as without the copies.
#pragma once
#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "core/monitor.hpp"
#include "core/pool.hpp"
#include "core/rows.hpp"

namespace hinge {

// Contiguous copies of some rows of a view.
template <class View>
class PackedRows;

template <class T>
class PackedRows<DenseRowView<T>> {
 public:
  using View = DenseRowView<T>;
  void pack(const View& from, const index_t* order, index_t n) {
    data_.resize(n * from.cols);
    for (index_t k = 0; k < n; ++k) {
      if (k + kFetched < n) from.prefetch(order[k + kFetched]);
      std::copy_n(from.data + order[k] * from.stride, from.cols, data_.data() + k * from.cols);
    }
    view_ = {data_.data(), from.cols, from.cols};
  }
  const View& view() const { return view_; }

  static index_t bytes(const View& rows, index_t n) { return n * rows.cols * static_cast<index_t>(sizeof(T)); }

 private:
  View view_{};
  std::vector<T> data_;
};

template <class T, class I>
class PackedRows<SparseRowView<T, I>> {
 public:
  using View = SparseRowView<T, I>;
  void pack(const View& from, const index_t* order, index_t n) {
    start_.resize(n + 1);
    start_[0] = 0;
    for (index_t k = 0; k < n; ++k) start_[k + 1] = start_[k] + from.indptr[order[k] + 1] - from.indptr[order[k]];
    if (static_cast<index_t>(data_.size()) < static_cast<index_t>(start_[n])) {
      data_.resize(start_[n]);
      indices_.resize(start_[n]);
    }
    for (index_t k = 0; k < n; ++k) {
      if (k + kFetched < n) from.prefetch(order[k + kFetched]);
      const I begin = from.indptr[order[k]], length = start_[k + 1] - start_[k];
      std::copy_n(from.data + begin, length, data_.data() + start_[k]);
      std::copy_n(from.indices + begin, length, indices_.data() + start_[k]);
    }
    view_ = {data_.data(), indices_.data(), start_.data()};
  }
  const View& view() const { return view_; }

  static index_t bytes(const View& rows, index_t n) {
    return static_cast<index_t>(rows.indptr[n] - rows.indptr[0]) * static_cast<index_t>(sizeof(T) + sizeof(I));
  }

 private:
  View view_{};
  std::vector<T> data_;
  std::vector<I> indices_, start_;
};

// Data of fewer than kAtHand bytes stay in the cache, and rows longer than kLongRow bytes are read at full speed
// wherever they are: neither is copied.
constexpr index_t kAtHand = index_t{1} << 24, kLongRow = 8192, kPackedBlock = index_t{1} << 17;

// Work on a block of visits that does not depend on their order: `before` the visits (gathering the targets of the
// rows) and `after` them. `slot` is one of kSlots and stays the same for one block. The visits end when `after` returns
// false.
constexpr index_t kSlots = 3;  // one block is being prepared, one visited, one finished

struct NothingBeside {
  void before(index_t /*slot*/, index_t /*begin*/, index_t /*end*/) {}
  bool after(index_t /*slot*/, index_t /*begin*/, index_t /*end*/) { return true; }
};

// Visits rows order[0], order[1], ... Calls body(slot, view, at, begin, end) for consecutive ranges of visits, where
// visit k is row at[k - begin] of view; every range except the last has a length that is a multiple of `multiple`. For
// one range `beside.before` ends before the body starts and `beside.after` starts after the body ends; they may run
// while the body of another range runs. Each of the three may run on any thread, one range at a time, and must not
// poll: this function checks for Ctrl-C. With `alone` everything runs on the calling thread and no row is copied.
template <class View, class Body, class Beside>
void visit_rows(const View& rows, const std::vector<index_t>& order, index_t multiple, bool alone, Monitor& monitor,
                const Body& body, Beside& beside) {
  const index_t n = static_cast<index_t>(order.size()), bytes = PackedRows<View>::bytes(rows, n);
  const index_t each = std::max<index_t>(1, n > 0 ? bytes / n : 1);
  const index_t block = multiple * std::max<index_t>(1, kPackedBlock / each / multiple);
  alone = alone || num_threads() == 1;
  if (alone || bytes < kAtHand || each > kLongRow || std::is_sorted(order.begin(), order.end())) {
    for (index_t begin = 0; begin < n; begin += block) {
      monitor.poll();
      const index_t end = std::min(begin + block, n);
      beside.before(0, begin, end);
      body(index_t{0}, rows, order.data() + begin, begin, end);
      if (!beside.after(0, begin, end)) return;
    }
    return;
  }
  std::vector<index_t> at(block);
  std::iota(at.begin(), at.end(), index_t{0});
  PackedRows<View> packed[kSlots];
  const auto slot = [&](index_t begin) { return begin / block % kSlots; };
  const auto prepare = [&](index_t begin) {
    if (begin >= n) return;
    const index_t end = std::min(begin + block, n);
    packed[slot(begin)].pack(rows, order.data() + begin, end - begin);
    beside.before(slot(begin), begin, end);
  };
  const auto finish = [&](index_t begin) { return beside.after(slot(begin), begin, std::min(begin + block, n)); };
  prepare(0);
  bool proceed = true;
  index_t begin = 0;
  for (; begin < n && proceed; begin += block) {
    parallel_for(2, [&](index_t part) {
      if (part == 0) {
        body(slot(begin), packed[slot(begin)].view(), at.data(), begin, std::min(begin + block, n));
      } else {
        prepare(begin + block);
        if (begin > 0) proceed = finish(begin - block);
      }
    });
  }
  if (proceed && n > 0) finish(begin - block);
}

}  // namespace hinge
