// The least that tests of the core need: named tests, and checks that go on after a failure.
#pragma once
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace hinge::tests {

struct Test {
  const char* name;
  std::function<void()> body;
};

inline std::vector<Test>& all() {
  static std::vector<Test> tests;
  return tests;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Register {
  Register(const char* name, std::function<void()> body) { all().push_back({name, std::move(body)}); }
};

inline void check(bool holds, const char* what, const char* file, int line) {
  if (holds) return;
  ++failures();
  std::printf("%s:%d: %s does not hold\n", file, line, what);
}

inline bool close(double a, double b, double tolerance) {
  return std::fabs(a - b) <= tolerance * (1.0 + std::fabs(a) + std::fabs(b));
}

}  // namespace hinge::tests

#define HINGE_JOIN_(a, b) a##b
#define HINGE_JOIN(a, b) HINGE_JOIN_(a, b)
#define TEST(name)                                                                                    \
  static void HINGE_JOIN(body_, __LINE__)();                                                          \
  static const hinge::tests::Register HINGE_JOIN(test_, __LINE__)(name, HINGE_JOIN(body_, __LINE__)); \
  static void HINGE_JOIN(body_, __LINE__)()
#define CHECK(condition) hinge::tests::check((condition), #condition, __FILE__, __LINE__)
