#include "solvers/isotonic.hpp"

#include <algorithm>

namespace hinge {

std::vector<double> isotonic(const double* y, const double* w, index_t n) {
  struct Block {
    double mean, weight;
    index_t end;
  };
  std::vector<Block> blocks;
  blocks.reserve(n);
  for (index_t i = 0; i < n; ++i) {
    Block top{y[i], w[i], i + 1};
    while (!blocks.empty() && blocks.back().mean >= top.mean) {
      const Block& below = blocks.back();
      const double weight = below.weight + top.weight;
      top.mean = below.mean + (top.mean - below.mean) * (top.weight / weight);
      top.weight = weight;
      blocks.pop_back();
    }
    blocks.push_back(top);
  }
  std::vector<double> f(n);
  index_t begin = 0;
  for (const Block& block : blocks) {
    std::fill(f.begin() + begin, f.begin() + block.end, block.mean);
    begin = block.end;
  }
  return f;
}

}  // namespace hinge
