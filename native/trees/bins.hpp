// A table quantised to at most 255 bins per feature: one byte per cell.
//
// Bin b of a numeric feature holds the values in (edge[b-1], edge[b]]; bin 255 holds the missing values. A feature with
// at most max_bins distinct values has one bin per value, so it loses no information. The bins of a categorical feature
// are its codes 0, 1, ... as given. The bytes are stored twice: in groups of up to 16 adjacent slots for histograms
// (one 16-byte load per row; a slot is one feature or several, see bundle.hpp), and by column for partitioning rows.
#pragma once
#include <vector>

#include "core/aligned.hpp"
#include "core/hot.hpp"

namespace hinge::trees {

constexpr int kBins = 256;
constexpr std::uint8_t kMissing = 255;
constexpr int kGroup = 16;

// Row-major or column-major view of the raw table.
template <class T>
struct Table {
  const T* data;
  index_t rows, cols, row_stride, col_stride;
  T at(index_t i, index_t j) const { return data[i * row_stride + j * col_stride]; }
};

struct Feature {
  bool categorical = false;
  bool missing = false;     // whether any training value is missing
  int bins = 1;             // bins of values, without the bin of missing values
  std::vector<double> low;  // smallest and largest training value in each bin (of the sample that gave the edges)
  std::vector<double> high;
  std::vector<double> edge;  // bins - 1 numbers: x <= edge[b] puts x in bin b or lower
};

struct Part {
  index_t feature;
  int first;  // code of its first bin other than the usual one
  int usual;  // bin that has code 0, or -1 if the codes are the bins
};

struct Slot {
  std::vector<Part> parts;
  int codes;  // without the code of missing values
  int span;   // number of its cells, with the one of missing values if there is one
  bool shared() const { return parts.size() > 1; }
};

struct Bins {
  index_t rows = 0, cols = 0;
  std::vector<Feature> features;
  std::vector<Slot> slots;
  index_t groups = 0;
  std::vector<index_t> group_begin;  // groups + 1: the slots of a group
  std::vector<bool> two_codes;       // by group: whether all of its bytes are 0 or 1
  Unset<std::uint8_t> by_group;      // groups x rows x kGroup
  Unset<std::uint8_t> by_col;        // cols x rows

  const std::uint8_t* group(index_t g) const { return by_group.data() + g * rows * kGroup; }
  const std::uint8_t* col(index_t j) const { return by_col.data() + j * rows; }
};

struct BinOptions {
  int max_bins = 255;
  index_t sample = 200000;  // number of rows from which the edges are computed
  std::uint64_t seed = 0;
  bool bundle = true;  // whether features may share slots; CART trees (cart.hpp) need one slot per feature
};

// weight may be null. categorical has one flag per column; categorical cells hold codes 0 ... 254 or NaN.
template <class T>
Bins make_bins(const Table<T>& x, const double* weight, const std::vector<std::uint8_t>& categorical,
               const BinOptions& options);

// The steps of make_bins, for tables that are read in blocks. First come the features, with their edges from a sample
// of all rows;
template <class T>
std::vector<Feature> find_features(const Table<T>& x, const double* weight,
                                   const std::vector<std::uint8_t>& categorical, const BinOptions& options);
// then the bytes of every block (cols x rows), which also finds missing values and the codes of categories;
template <class T>
void code_columns(const Table<T>& x, std::vector<Feature>& features, std::uint8_t* by_col);
// then slots and groups, from the features of all blocks and without rows (features do not share slots);
Bins make_layout(std::vector<Feature> features);
// and finally each block with that layout: complete, or only the bytes of its groups (groups x rows x kGroup).
Unset<std::uint8_t> codes_by_group(const Bins& layout, const std::uint8_t* codes, index_t rows);
Bins with_codes(const Bins& layout, const std::uint8_t* codes, index_t rows);

// Divides distinct values (increasing, with their weights, which are not read if every value has its own bin) into bins
// of nearly equal weight.
template <class T>
void cut_bins(const std::vector<T>& values, const std::vector<double>& weights, int max_bins, Feature& f);

// The rows from which the edges are computed: all, or one from each of `sample` equal strata.
std::vector<std::uint32_t> sample_rows(index_t n, const BinOptions& options);

// A number t with a <= t < b: the midpoint, if it is representable.
double middle_of(double a, double b);

// The threshold of a split that sends bins <= left to the left, where `right` is the next bin that contains data.
double split_threshold(const Feature& feature, int left, int right);

// The largest T that is not greater than x: for values of type T the comparison x <= t gives the same result.
template <class T>
T round_down(double x);

}  // namespace hinge::trees
