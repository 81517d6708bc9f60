// A table of numbers and categories: X = [D | Z_1 | ... | Z_q], where D is any Design and Z_k is the 0/1 matrix with
// one column per level that a column of integer codes stands for. Z_k is never formed: products with it gather and
// scatter by code. A negative code is a row of zeros (a reference level, or a level not seen in training).
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
