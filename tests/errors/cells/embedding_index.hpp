// The indices of an embedding are not integers.
//
// An index is the number of a row of the table.
#pragma once

#include <cella/ops/indexing.hpp>
#include <cella/runtime/program.hpp>

namespace embedding_index {
using namespace cella;

struct Wrong {
  parameter<1000, 64> table;

  constexpr var operator()(var x) const { return embedding(x, table); }
};

// Mended:

struct Mended {
  parameter<1000, 64> table;

  constexpr var operator()(var x) const { return embedding(cast(x, dtype::i32), table); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 8, 16>>;

}  // namespace embedding_index
