// One line checks a function in every way in which transforms can take it: both modes of
// differentiation, batching, their compositions up to third order, each graph once more after
// pruning and after all passes.
#pragma once

#include <array>
#include <source_location>
#include <vector>

#include "support/traced.hpp"

namespace cella::test {

/// The result of `f` through a graph that is traced, found well formed, and run; after pruning it
/// must yield the same numbers, bit for bit, and after all passes nearly so.
valued_tensor run_checked(const var_function& f, const std::vector<valued_tensor>& inputs);

/// Largest allowed differences, relative to max(1, |expected|).
struct transform_limits {
  double numeric = 1e-6;  ///< of a derivative from the difference quotient
  double same = 1e-9;     ///< of two ways to the same derivative
  double step = 1e-5;
};

/// Checks a function by each of its floating-point inputs. Samples are the inputs, scaled.
void check_transforms(const var_function& f, const std::vector<valued_tensor>& in,
                      const transform_limits& limits = {},
                      std::source_location at = std::source_location::current());

/// Checks a function by operand `k` alone, without difference quotients: `in` are its inputs,
/// `samples` three other values of operand k.
void check_transforms_by(const var_function& f, const std::vector<valued_tensor>& in, std::size_t k,
                         const std::vector<valued_tensor>& samples,
                         std::source_location at = std::source_location::current());

/// Checks that a batched function does for each sample what it does for one: with samples of all
/// operands, and of each operand alone. `samples` are two lists of operands.
void check_batching(const var_function& f, const std::array<std::vector<valued_tensor>, 2>& samples,
                    double tolerance, std::source_location at = std::source_location::current());

/// Uniform in [-1, 1).
reals pseudo_random(std::int64_t count, std::uint64_t seed);

}  // namespace cella::test
