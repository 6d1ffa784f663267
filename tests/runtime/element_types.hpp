// A cell in each of the ways that the library runs one: eagerly, as a graph traced at run time, and
// compiled for two back ends. Values keep their type, so that none loses a digit.
#pragma once

#include <doctest/doctest.h>

#include <cella/runtime/executable.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "support/tiny_backend.hpp"

namespace cella::test {

/// The bytes of each result, and where they were computed.
struct typed_results {
  std::string way;
  std::vector<std::vector<std::byte>> bytes;

  template <class T>
  std::vector<T> as(std::size_t k) const {
    REQUIRE(bytes[k].size() % sizeof(T) == 0);
    std::vector<T> values(bytes[k].size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes[k].data(), bytes[k].size());
    return values;
  }
};

inline std::vector<std::byte> bytes_of(const tensor_ref& t) {
  return {t.data, t.data + t.type.bytes()};
}

template <class P, class Backend, class Cell>
typed_results run_compiled(Cell cell, const std::vector<std::vector<std::byte>>& in) {
  using Q = with_backend<P, Backend>;
  parameter_store store(cell, 1, P::element_type);
  executable<Q> run(store);
  typed_results r{"compiled for " + std::string(Backend::name), {}};
  [&]<std::size_t... I>(std::index_sequence<I...>) { run.call_unchecked(in[I].data()...); }
  (std::make_index_sequence<P::graph.inputs.size()>{});
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    auto keep = [&](const auto& values) {
      const auto* const first = reinterpret_cast<const std::byte*>(values.data());
      r.bytes.emplace_back(first, first + values.size() * sizeof(values[0]));
    };
    (keep(run.template result<int(K)>()), ...);
  }
  (std::make_index_sequence<P::graph.region_outputs(0).size()>{});
  return r;
}

/// The results of `cell` in eager mode, for arguments of the types `Arguments`, whose bytes are
/// given.
template <class... Arguments, class Cell>
typed_results run_in_eager_mode(Cell cell, std::vector<std::vector<std::byte>> in) {
  constexpr std::array<tensor_type, sizeof...(Arguments)> types{Arguments::type...};
  eager_evaluator evaluator;
  builder b;
  b.eager = &evaluator;
  std::array<var, sizeof...(Arguments)> x{};
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = {&b, b.input(types[i], input_role::argument, "x")};
    evaluator.values.bind(x[i].id, {in[i].data(), types[i]});
  }
  list<var> y;
  cella::detail::flatten_results(std::apply(cell, x), y);
  typed_results r{"eager", {}};
  for (const var& v : y) r.bytes.push_back(bytes_of(evaluator.values.value(v.id)));
  return r;
}

/// And in all ways.
template <class... Arguments, class Cell>
std::vector<typed_results> run_all_ways(Cell cell, std::vector<std::vector<std::byte>> in) {
  constexpr std::array<tensor_type, sizeof...(Arguments)> types{Arguments::type...};
  std::vector<typed_results> all{run_in_eager_mode<Arguments...>(cell, in)};
  {
    const graph g = trace(cell, types);
    value_store values;
    for (std::size_t i = 0; i < in.size(); ++i)
      values.bind(g.input(int(i)), {in[i].data(), types[i]});
    interpret(g, values);
    all.push_back({"traced", {}});
    for (node_id n : g.regions[0].outputs) all.back().bytes.push_back(bytes_of(values.value(n)));
  }
  constexpr bool in_double = (... || (Arguments::type.element == dtype::c128));
  using P = program<Cell, false, in_double ? dtype::f64 : dtype::f32, Arguments...>;
  all.push_back(run_compiled<P, cpu::backend>(cell, in));
  // It has no control flow.
  if constexpr (P::graph.regions.size() == 1)
    all.push_back(run_compiled<P, tiny::backend>(cell, in));
  return all;
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto* const first = reinterpret_cast<const std::byte*>(values.data());
  return {first, first + values.size() * sizeof(T)};
}

}  // namespace cella::test
