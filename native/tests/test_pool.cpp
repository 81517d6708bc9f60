#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "core/pool.hpp"
#include "tests/check.hpp"

namespace {

using hinge::index_t;

// How often each part was visited.
std::vector<int> visits(index_t parts) {
  auto count = std::make_unique<std::atomic<int>[]>(parts + 1);
  hinge::parallel_for(parts, [&](index_t p) { ++count[p]; });
  return std::vector<int>(count.get(), count.get() + parts);
}

TEST("pool: every part runs once, for any number of threads") {
  for (const int threads : {1, 2, 3, 7, 16}) {
    hinge::set_num_threads(threads);
    for (const index_t parts : {0, 1, 2, 3, 15, 16, 17, 1000})
      for (int again = 0; again < 20; ++again)
        for (const int count : visits(parts)) CHECK(count == 1);
  }
  hinge::set_num_threads(0);
}

TEST("pool: a loop inside a part runs on its thread alone, all of it") {
  hinge::set_num_threads(4);
  std::atomic<int> inner{0}, alone{0};
  hinge::parallel_for(8, [&](index_t) {
    const std::thread::id here = std::this_thread::get_id();
    alone += hinge::threads_here() == 1;
    hinge::parallel_for(100, [&](index_t) { inner += std::this_thread::get_id() == here; });
  });
  CHECK(inner == 800);
  CHECK(alone == 8);
  CHECK(hinge::threads_here() == 4);
}

TEST("pool: an exception of a part reaches the caller, and the pool goes on") {
  for (const int threads : {1, 4}) {
    hinge::set_num_threads(threads);
    for (int again = 0; again < 50; ++again) {
      bool caught = false;
      try {
        hinge::parallel_for(64, [&](index_t p) {
          if (p % 7 == 3) throw std::runtime_error("part");
        });
      } catch (const std::runtime_error& error) {
        caught = std::string(error.what()) == "part";
      }
      CHECK(caught);
    }
    for (const int count : visits(64)) CHECK(count == 1);
  }
}

TEST("pool: several callers at a time each get all of their parts") {
  hinge::set_num_threads(4);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 6; ++caller)
    callers.emplace_back([&] {
      for (int again = 0; again < 100; ++again)
        for (const int count : visits(37)) wrong += count != 1;
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST("pool: ranges cover everything once, and sums add up") {
  for (const index_t n : {0, 1, 5, 1000, 12345})
    for (const index_t parts : {1, 2, 7, 256}) {
      CHECK(hinge::range_begin(n, parts, 0) == 0);
      CHECK(hinge::range_begin(n, parts, parts) == n);
      for (index_t p = 0; p < parts; ++p) {
        const index_t size = hinge::range_begin(n, parts, p + 1) - hinge::range_begin(n, parts, p);
        CHECK(size == n / parts || size == n / parts + 1);
      }
    }
  const double sum = hinge::sum_ranges(10000, 16, [](index_t begin, index_t end) {
    double part = 0;
    for (index_t i = begin; i < end; ++i) part += static_cast<double>(i);
    return part;
  });
  CHECK(sum == 49995000.0);
}

TEST("pool: parts depend on the work alone, and tables of parts keep within their memory") {
  CHECK(hinge::parts_for(0, 100) == 1);
  CHECK(hinge::parts_for(99, 100) == 1);
  CHECK(hinge::parts_for(250, 100) == 2);
  CHECK(hinge::parts_for(1 << 30, 1) == hinge::kMostParts);
  for (const index_t table : {0, 1, 100, 10'000, 1'000'000, 100'000'000}) {
    const index_t parts = hinge::sum_parts(index_t{1} << 40, 1 << 15, table);
    CHECK(parts >= 4 && parts <= hinge::kMostParts);
    CHECK(parts == 4 || parts * table <= (index_t{1} << 23));
    // Never more numbers to clear and add than half of those to read.
    const index_t few = hinge::sum_parts(10 * table, 1, table);
    CHECK(table == 0 || few <= 5);
  }
}

}  // namespace
