#include "problem/strings.hpp"

#include <utility>
#include <vector>

#include "core/pool.hpp"

namespace hinge {
namespace {

// One pair. `before` is K'_{q-1} of Lodhi et al., (m+1) x (n+1); K'' runs along a row.
double subsequence(const std::int32_t* s, index_t m, const std::int32_t* t, index_t n, int length, double decay,
                   std::vector<double>& before, std::vector<double>& now) {
  if (m < length || n < length) return 0.0;
  const index_t width = n + 1;
  before.assign((m + 1) * width, 1.0);
  for (int q = 1; q < length; ++q) {
    now.assign((m + 1) * width, 0.0);
    for (index_t i = q; i <= m; ++i) {
      const double* above = before.data() + (i - 1) * width;
      const double* last = now.data() + (i - 1) * width;
      double* row = now.data() + i * width;
      const std::int32_t letter = s[i - 1];
      double run = 0.0;
      for (index_t j = q; j <= n; ++j) {
        run = decay * (run + (t[j - 1] == letter ? decay * above[j - 1] : 0.0));
        row[j] = decay * last[j] + run;
      }
    }
    std::swap(before, now);
  }
  double total = 0.0;
  for (index_t i = length; i <= m; ++i) {
    const double* above = before.data() + (i - 1) * width;
    double sum = 0.0;
    for (index_t j = length; j <= n; ++j)
      if (t[j - 1] == s[i - 1]) sum += above[j - 1];
    total += sum;
  }
  return decay * decay * total;
}

}  // namespace

void subsequence_gram(const Strings& a, const Strings& b, int length, double decay, bool same, double* out) {
  const index_t parts = parts_for(a.n, 1, 256);
  parallel_for(parts, [&](index_t part) {
    std::vector<double> before, now;
    for (index_t i = range_begin(a.n, parts, part); i < range_begin(a.n, parts, part + 1); ++i)
      for (index_t j = same ? i : 0; j < b.n; ++j)
        out[i * b.n + j] = subsequence(a.letters + a.start[i], a.start[i + 1] - a.start[i], b.letters + b.start[j],
                                       b.start[j + 1] - b.start[j], length, decay, before, now);
  });
  if (same)
    for (index_t i = 0; i < a.n; ++i)
      for (index_t j = 0; j < i; ++j) out[i * b.n + j] = out[j * b.n + i];
}

}  // namespace hinge
