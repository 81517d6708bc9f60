// A table of numeric and categorical columns: X = [D | Z_1 | ... | Z_q], where D is any Design and Z_k is the one-hot
// matrix of a column of integer codes, one column per level. Z_k is never formed: products with it gather and scatter
// by code. A negative code stands for a row of zeros (a reference level, or a level that is not in the training data).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/design.hpp"

namespace hinge {

struct CodeColumn {
  const std::int32_t* code;  // one per row, below `levels`
  index_t levels;
};

std::unique_ptr<Design> coded(std::shared_ptr<Design> dense, std::vector<CodeColumn> columns);

}  // namespace hinge
