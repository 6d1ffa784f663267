// What tests of assigned states are made of.
#pragma once

#include <cella/transform/trace.hpp>
#include <source_location>
#include <string>
#include <string_view>

#include "three_ways.hpp"

namespace cella::test {

/// A state of a number, and what is done with it.
struct counter {
  state<> count{initializer::constant(1)};
  constexpr var value(var x) const { return operand(count).in(*x.b); }
  constexpr void set(var x, var v,
                     std::source_location at = std::source_location::current()) const {
    assign(x, count, v, at);
  }
};

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
            .run_eagerly(cell, types, {true, dtype::f64});
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
