// Cells of f64 arguments and results in every way that the library can run them: see harness.hpp.
#pragma once

#include <cella/transform/trace.hpp>
#include <source_location>
#include <string>
#include <string_view>

#include "support/harness.hpp"

namespace cella::test {

// What such cells are written with.
template <int... Extents>
using f64 = tensor<dtype::f64, Extents...>;
/// Constants in the graph of `like`.
constexpr var number(var like, double value) { return constant(*like.b, value, {dtype::f64, {}}); }
constexpr var zeros(var like, shape s) { return constant(*like.b, 0, {dtype::f64, s}); }

/// A state of a number, and what is done with it.
struct counter {
  state<> count{initializer::constant(1)};
  constexpr var value(var x) const { return operand(count).in(*x.b); }
  constexpr void set(var x, var v,
                     std::source_location at = std::source_location::current()) const {
    assign(x, count, v, at);
  }
};

/// A cell that is traced for training.
template <class Cell, class... Arguments>
using ways_of_cell = ways<program<Cell, true, dtype::f64, Arguments...>>;

/// Runs it `calls` times in a row, in every way: see `ways::check`.
template <class Cell, class... Arguments>
outcome check_cell(const std::vector<reals>& arguments, int calls = 1, double tolerance = 0,
                   std::uint64_t seed = 7) {
  return ways_of_cell<Cell, Arguments...>(seed).check(arguments, calls, tolerance);
}

/// The sentence that refuses a cell of one argument f64[2], less the place in `file`: the same in
/// eager mode and in graph mode.
template <class Cell>
std::string refusal(std::string_view file) {
  std::string both[2];
  for (const bool eagerly : {false, true}) {
    Cell cell;
    parameter_store store(cell, 1, dtype::f64);
    reals x{1, 2};
    const std::array types{tensor_type{dtype::f64, {2}}};
    const std::array refs{tensor_ref{reinterpret_cast<std::byte*>(x.data()), types[0]}};
    try {
      if (eagerly)
        runtime_path({&store, nullptr, refs, {}}, &compute)
            .run_eagerly([&](builder& b) { trace_into(b, cell, types); }, {true, dtype::f64});
      else
        trace(cell, types, {true, dtype::f64});
    } catch (const model_error& e) {
      const std::string s = e.what();
      CHECK(s.starts_with(file));
      both[eagerly] = s.substr(s.find(": ") + 2);
    }
  }
  CHECK(both[0] == both[1]);
  return both[0];
}

}  // namespace cella::test
