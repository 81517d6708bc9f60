// Exclusive feature bundling: several features in one byte.
//
// The columns of a one-hot category, and sparse columns with disjoint nonzeros, leave their usual bin in different
// rows. Their bins then fit into one code without loss: 0 where all are in their usual bin, and one code for every
// other bin of every feature. Histograms have one cell per code, so a category of 40 columns costs as much as one
// column; the cells of a feature follow exactly from those of its slot, the usual bin as the difference from the total.
#pragma once
#include "trees/histogram.hpp"

namespace hinge::trees {

// Assigns the features of `bins` to slots. Only features that never leave their usual bin together share one, so the
// result is exact.
std::vector<Slot> make_slots(const Bins& bins, bool bundle);

// The code of every bin of one feature in its slot (the code of a row is the sum over the slot's features).
void slot_codes(const Part& part, int bins, std::uint8_t* codes);

// The cells (wide or narrow) of one feature of a shared slot whose cells sum to `total`.
template <class Entry>
void unbundle(const Entry* slot, const Entry& total, const Part& part, int bins, Entry* out) {
  Entry usual_cell = total;
  for (int b = 0; b < bins; ++b) {
    if (b == part.usual) continue;
    out[b] = slot[part.first + b - (b > part.usual)];
    usual_cell -= out[b];
  }
  out[part.usual] = usual_cell;
}

}  // namespace hinge::trees
