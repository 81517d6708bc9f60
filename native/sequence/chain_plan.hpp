// The products of the tokens and the weights of a conditional random field, arranged for passes over the data.
//
// Attributes with weights for many labels are "dense": their weights are rows of a table, and loops over labels are
// whole vectors. The others, nearly all on real text, have one to three labels and are "thin": their weights are
// numbers in a list, one entry per token and weight. The gradient of a dense row is summed by blocks of tokens while
// the block is in the cache; that of a thin weight is summed token by token.
#pragma once
#include <span>

#include "sequence/chain.hpp"

namespace hinge {

struct ChainPlan {
  // x must outlive the plan.
  ChainPlan(const Tokens& x, const Layout& layout, index_t width);
  ChainPlan(const ChainPlan&) = delete;  // `row` may point into it
  ChainPlan& operator=(const ChainPlan&) = delete;

  struct Thin {
    std::int32_t weight;  // index in `thin`
    std::int32_t label;
  };

  std::vector<index_t> blocks;  // bounds of blocks, in sequences
  std::vector<index_t> parts;   // bounds of parts, in blocks: units of work of a thread

  std::vector<std::int32_t> dense;        // attribute of each dense row
  std::vector<index_t> row_begin;         // tokens + 1 offsets into the dense rows of each token
  std::span<const std::int32_t> row;      // the attributes themselves if all are dense, otherwise `own_row`
  std::vector<index_t> block_entry;       // blocks + 1 offsets into the next two: the dense rows in a block
  std::vector<std::int32_t> entry_row;    //
  std::vector<index_t> entry_begin;       // and the start of their tokens
  std::vector<std::int32_t> entry_token;  // relative to the first token of the block

  std::vector<index_t> thin;        // index of each thin weight among all weights
  std::vector<index_t> thin_begin;  // tokens + 1 offsets into the thin weights of each token
  std::vector<Thin> thin_entry;

  std::vector<double> row_value, entry_value, thin_value;  // of the attributes; empty: every value is one

 private:
  std::vector<std::int32_t> own_row;

  void sort_tokens(const Tokens& x, const Layout& layout, index_t width);
  void sort_blocks(const Tokens& x);
};

}  // namespace hinge
