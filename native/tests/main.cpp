#include "tests/check.hpp"

// Runs every test, or those whose name contains the argument.
int main(int count, char** arguments) {
  using namespace hinge::tests;
  int run = 0;
  for (const Test& test : all()) {
    if (count > 1 && std::string(test.name).find(arguments[1]) == std::string::npos) continue;
    const int before = failures();
    test.body();
    ++run;
    if (failures() > before) std::printf("FAILED %s\n", test.name);
  }
  std::printf("%d tests of the core, %d checks failed\n", run, failures());
  return failures() > 0 || run == 0;
}
