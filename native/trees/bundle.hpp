// Several features in one byte.
//
// Columns of a one-hot category, and sparse columns that never meet, leave their usual bin in different rows. Their
// bins then fit into one code without loss: 0 where all are at their usual bin, and one code for every other bin of
// every feature. Histograms are counted over codes, so a category spread over 40 columns costs as much as one column;
// the cells of a feature are read off those of its slot exactly, the usual bin by difference from the total.
#pragma once
#include "trees/histogram.hpp"

namespace hinge::trees {

// Shares the features of `bins` out to slots. Only features that never meet go together: nothing is approximated.
std::vector<Slot> make_slots(const Bins& bins, bool bundle);

// The code of every bin of one feature in its slot (adding up those of the slot's features gives the row's code).
void slot_codes(const Part& part, int bins, std::uint8_t* codes);

// The cells (wide or narrow) of one feature of a shared slot, whose cells add up to `total`.
template <class Entry>
void unbundle(const Entry* slot, const Entry& total, const Part& part, int bins, Entry* out) {
  Entry rest = total;
  for (int b = 0; b < bins; ++b) {
    if (b == part.usual) continue;
    out[b] = slot[part.first + b - (b > part.usual)];
    rest -= out[b];
  }
  out[part.usual] = rest;
}

}  // namespace hinge::trees
