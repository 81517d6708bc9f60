#include "trees/levels.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "trees/gathers.hpp"
#include "trees/predict.hpp"

namespace hinge::trees {
namespace {

// Other machines use masks (predict.hpp).
#if defined(HINGE_AVX512)

// The entries of a level's table for the nodes in `at`: up to 32 entries, from two registers.
HINGE_AVX512 inline __m512i pick(__m512i low, __m512i high, __m512i at, bool wide) {
  return wide ? _mm512_permutex2var_epi32(low, at, high) : _mm512_permutexvar_epi32(at, low);
}

// One level: updates the node of every row within the level. Reads up to 32 entries past the tables.
HINGE_AVX512 void step(const float* columns, const float* threshold, const std::int32_t* offset, int level,
                       std::int32_t* node) {
  const bool wide = level > 4;
  const __m512i t0 = _mm512_loadu_si512(threshold), t1 = _mm512_loadu_si512(threshold + 16);
  const __m512i o0 = _mm512_loadu_si512(offset), o1 = _mm512_loadu_si512(offset + 16);
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (index_t i = 0; i < Levels::kRows; i += 16) {
    const __m512i at = _mm512_load_si512(node + i);
    const __m512i from = _mm512_add_epi32(pick(o0, o1, at, wide), lane);
    const __m512 x = _mm512_i32gather_ps(from, columns + i, 4);
    const __mmask16 right = _mm512_cmp_ps_mask(x, _mm512_castsi512_ps(pick(t0, t1, at, wide)), _CMP_GT_OQ);
    const __m512i doubled = _mm512_add_epi32(at, at);
    _mm512_store_si512(node + i, _mm512_mask_add_epi32(doubled, right, doubled, _mm512_set1_epi32(1)));
  }
}

HINGE_AVX512 void step(const double* columns, const double* threshold, const std::int32_t* offset, int level,
                       std::int32_t* node) {
  const bool wide = level > 4;
  const __m512i o0 = _mm512_loadu_si512(offset), o1 = _mm512_loadu_si512(offset + 16);
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (index_t i = 0; i < Levels::kRows; i += 8) {
    const __m256i at = _mm256_load_si256(reinterpret_cast<const __m256i*>(node + i));
    const __m256i from = _mm512_castsi512_si256(pick(o0, o1, _mm512_castsi256_si512(at), wide));
    const __m512d x = _mm512_i32gather_pd(_mm256_add_epi32(from, lane), columns + i, 8);
    const __mmask8 right = _mm512_cmp_pd_mask(x, _mm512_i32gather_pd(at, threshold, 8), _CMP_GT_OQ);
    const __m256i doubled = _mm256_add_epi32(at, at);
    _mm256_store_si256(reinterpret_cast<__m256i*>(node + i),
                       _mm256_mask_add_epi32(doubled, right, doubled, _mm256_set1_epi32(1)));
  }
}

// The first four levels, whose few columns are loaded completely.
HINGE_AVX512 void top(const float* columns, const float* t, const std::int32_t* o, std::int32_t* node) {
  const __m512i one = _mm512_set1_epi32(1);
  const __m512i third = _mm512_loadu_si512(t + 3), fourth = _mm512_loadu_si512(t + 7);
  for (index_t i = 0; i < Levels::kRows; i += 16) {
    const auto load = [&](int k) HINGE_AVX512 { return _mm512_loadu_ps(columns + o[k] + i); };
    const auto either = [&](__mmask16 m, __m512 l, __m512 r) HINGE_AVX512 { return _mm512_mask_blend_ps(m, l, r); };
    const auto further = [&](__m512i at, __mmask16 right) HINGE_AVX512 {
      const __m512i doubled = _mm512_add_epi32(at, at);
      return _mm512_mask_add_epi32(doubled, right, doubled, one);
    };
    const __mmask16 a = _mm512_cmp_ps_mask(load(0), _mm512_set1_ps(t[0]), _CMP_GT_OQ);
    const __mmask16 b = _mm512_cmp_ps_mask(either(a, load(1), load(2)),
                                           either(a, _mm512_set1_ps(t[1]), _mm512_set1_ps(t[2])), _CMP_GT_OQ);
    __m512i at = further(_mm512_maskz_mov_epi32(a, one), b);
    const __m512 x = either(a, either(b, load(3), load(4)), either(b, load(5), load(6)));
    const __mmask16 c = _mm512_cmp_ps_mask(x, _mm512_castsi512_ps(_mm512_permutexvar_epi32(at, third)), _CMP_GT_OQ);
    at = further(at, c);
    const __m512 z = either(a, either(b, either(c, load(7), load(8)), either(c, load(9), load(10))),
                            either(b, either(c, load(11), load(12)), either(c, load(13), load(14))));
    const __mmask16 d = _mm512_cmp_ps_mask(z, _mm512_castsi512_ps(_mm512_permutexvar_epi32(at, fourth)), _CMP_GT_OQ);
    _mm512_store_si512(node + i, further(at, d));
  }
}

HINGE_AVX512 void top(const double* columns, const double* t, const std::int32_t* o, std::int32_t* node) {
  const __m256i one = _mm256_set1_epi32(1);
  const __m512d third = _mm512_loadu_pd(t + 3), fourth = _mm512_loadu_pd(t + 7);
  for (index_t i = 0; i < Levels::kRows; i += 8) {
    const auto load = [&](int k) HINGE_AVX512 { return _mm512_loadu_pd(columns + o[k] + i); };
    const auto either = [&](__mmask8 m, __m512d l, __m512d r) HINGE_AVX512 { return _mm512_mask_blend_pd(m, l, r); };
    const auto further = [&](__m256i at, __mmask8 right) HINGE_AVX512 {
      const __m256i doubled = _mm256_add_epi32(at, at);
      return _mm256_mask_add_epi32(doubled, right, doubled, one);
    };
    const __mmask8 a = _mm512_cmp_pd_mask(load(0), _mm512_set1_pd(t[0]), _CMP_GT_OQ);
    const __mmask8 b = _mm512_cmp_pd_mask(either(a, load(1), load(2)),
                                          either(a, _mm512_set1_pd(t[1]), _mm512_set1_pd(t[2])), _CMP_GT_OQ);
    __m256i at = further(_mm256_maskz_mov_epi32(a, one), b);
    const __m512d x = either(a, either(b, load(3), load(4)), either(b, load(5), load(6)));
    const __mmask8 c = _mm512_cmp_pd_mask(x, _mm512_permutexvar_pd(_mm512_cvtepi32_epi64(at), third), _CMP_GT_OQ);
    at = further(at, c);
    const __m512d z = either(a, either(b, either(c, load(7), load(8)), either(c, load(9), load(10))),
                             either(b, either(c, load(11), load(12)), either(c, load(13), load(14))));
    const __mmask8 d = _mm512_cmp_pd_mask(z, _mm512_permutexvar_pd(_mm512_cvtepi32_epi64(at), fourth), _CMP_GT_OQ);
    _mm256_store_si256(reinterpret_cast<__m256i*>(node + i), further(at, d));
  }
}

// Values of up to 64 leaves, from registers: selects among 16 by the low bits of the node, then by the next two bits.
HINGE_AVX512 void add_values(const double* value, const std::int32_t* node, double* sums) {
  __m512d v[8];
  for (int k = 0; k < 8; ++k) v[k] = _mm512_loadu_pd(value + 8 * k);
  for (index_t i = 0; i < Levels::kRows; i += 8) {
    const __m512i at = _mm512_cvtepi32_epi64(_mm256_load_si256(reinterpret_cast<const __m256i*>(node + i)));
    const __mmask8 high = _mm512_test_epi64_mask(at, _mm512_set1_epi64(32));
    const __mmask8 low = _mm512_test_epi64_mask(at, _mm512_set1_epi64(16));
    const __m512d a =
        _mm512_mask_blend_pd(low, _mm512_permutex2var_pd(v[0], at, v[1]), _mm512_permutex2var_pd(v[2], at, v[3]));
    const __m512d b =
        _mm512_mask_blend_pd(low, _mm512_permutex2var_pd(v[4], at, v[5]), _mm512_permutex2var_pd(v[6], at, v[7]));
    _mm512_storeu_pd(sums + i, _mm512_add_pd(_mm512_loadu_pd(sums + i), _mm512_mask_blend_pd(high, a, b)));
  }
}

#else

template <class T>
void top(const T*, const T*, const std::int32_t*, std::int32_t*) {}
template <class T>
void step(const T*, const T*, const std::int32_t*, int, std::int32_t*) {}
void add_values(const double*, const std::int32_t*, double*) {}

#endif

constexpr index_t kBeyond = 64;  // padding behind the entries of a level or tree

int depth_of(const Ensemble& e, std::int64_t base, std::int32_t node) {
  if (e.feature[base + node] < 0) return 0;
  return 1 + std::max(depth_of(e, base, e.left[base + node]), depth_of(e, base, e.left[base + node] + 1));
}

}  // namespace

bool Levels::build(const Ensemble& e) {
  constexpr std::int64_t kFewLeaves = 12;  // average number of leaves; implies at least four levels
  if (!have_gathers()) return false;
  const index_t trees = static_cast<index_t>(e.start.size()) - 1;
  std::int64_t nodes = 0;
  for (index_t t = 0; t < trees; ++t) {
    const std::int64_t size = e.start[t + 1] - e.start[t];
    if (size >= 2 << kDeepest) return false;
    nodes += size;
    depth_ = std::max(depth_, depth_of(e, e.start[t], 0));
  }
  if (!e.additive || depth_ > kDeepest || nodes < 2 * kFewLeaves * trees ||
      std::any_of(e.set.begin(), e.set.end(), [](std::int32_t s) { return s >= 0; }))
    return false;
  const index_t inner = (index_t{1} << depth_) - 1;
  offset_.assign(trees * inner + kBeyond, 0);
  threshold_.assign(trees * inner + kBeyond, std::numeric_limits<double>::infinity());
  value_.resize(trees * (inner + 1) + kBeyond);
  for (index_t t = 0; t < trees; ++t) {
    const std::int64_t base = e.start[t];
    const auto place = [&](auto&& self, std::int32_t node, int level, index_t at) -> void {
      const bool leaf = e.feature[base + node] < 0;
      if (level == depth_) {
        value_[t * (inner + 1) + at] = e.value[base + node];
        return;
      }
      const index_t slot = t * inner + (index_t{1} << level) - 1 + at;
      if (!leaf) {
        offset_[slot] = static_cast<std::int32_t>(e.feature[base + node] * kRows);
        threshold_[slot] = e.threshold[base + node];
      }
      self(self, leaf ? node : e.left[base + node], level + 1, 2 * at);
      self(self, leaf ? node : e.left[base + node] + 1, level + 1, 2 * at + 1);
    };
    place(place, 0, 0, 0);
  }
  threshold32_.resize(threshold_.size());
  std::transform(threshold_.begin(), threshold_.end(), threshold32_.begin(), round_down<float>);
  return true;
}

template <class T>
void Levels::add(index_t t, const T* columns, double* sums) const {
  const T* threshold;
  if constexpr (std::is_same_v<T, float>)
    threshold = threshold32_.data();
  else
    threshold = threshold_.data();
  const index_t inner = (index_t{1} << depth_) - 1;
  const std::int32_t* offset = offset_.data() + t * inner;
  threshold += t * inner;
  alignas(64) std::int32_t node[kRows];
  top(columns, threshold, offset, node);
  for (int level = 4; level < depth_; ++level) {
    const index_t begin = (index_t{1} << level) - 1;
    step(columns, threshold + begin, offset + begin, level, node);
  }
  add_values(value_.data() + t * (inner + 1), node, sums);
}
template void Levels::add(index_t, const float*, double*) const;
template void Levels::add(index_t, const double*, double*) const;

}  // namespace hinge::trees
