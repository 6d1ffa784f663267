// Elementwise operations of which all others are made: arithmetic, comparison and choice.
#pragma once

// clang-format off
#include <cella/ops/op.hpp>  // first: what the compiler says of a wrong operation names few files
#include <cella/ops/arithmetic.hpp>
#include <cella/ops/comparison.hpp>
#include <cella/ops/no_operation.hpp>
#include <cella/ops/no_standard_function.hpp>
// clang-format on
