// The gap-weighted subsequence kernel between strings (Lodhi et al. 2002, section 3):
//
//   k(s, t) = sum over words u of length p, over occurrences i of u in s and j of u in t, of decay^(span i + span j)
//
// by dynamic programming in p |s| |t| operations, sixteen strings t at a time. Letters are integers, strings are stored
// contiguously, and string i is [start_i, start_{i+1}).
#pragma once
#include "core/hot.hpp"

namespace hinge {

struct Strings {
  const std::int32_t* letters;
  const index_t* start;
  index_t n;
};

// out is a.n x b.n, row-major. If `same`, a and b are the same strings and every pair is compared once.
void subsequence_gram(const Strings& a, const Strings& b, int length, double decay, bool same, double* out);

}  // namespace hinge
