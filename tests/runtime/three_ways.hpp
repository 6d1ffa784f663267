// A cell run in each of the ways the library has: eagerly, as a graph traced at run time, and
// compiled, each on parameters and random state of its own that begin alike.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cella/runtime/executable.hpp>
#include <cella/train/runtime_path.hpp>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <vector>

namespace cella::test {

using reals = std::vector<double>;

// What cells of f64 are written with.
template <int... Extents>
using f64 = tensor<dtype::f64, Extents...>;
/// Constants in the graph of `like`.
constexpr var number(var like, double value) { return constant(*like.b, value, {dtype::f64, {}}); }
constexpr var zeros(var like, shape s) { return constant(*like.b, 0, {dtype::f64, s}); }

/// The results of one run: of the cell, and the states that it left behind (all of its parameters).
struct outcome {
  std::vector<reals> results;
  reals parameters;
  std::int64_t step{};  ///< of the random state
};

/// A cell of f64 arguments and results that is traced for training.
template <class Cell, class... Arguments>
class three_ways {
 public:
  using program = cella::program<Cell, true, dtype::f64, Arguments...>;
  static constexpr std::array types{Arguments::type...};

  explicit three_ways(std::uint64_t seed = 7, std::int64_t step = 0) : seed_(seed), step_(step) {}

  /// Runs `calls` times in a row; the results are those of the last call. Eager mode and the traced
  /// graph must agree bit for bit, and the program with them up to `tolerance`.
  outcome operator()(const std::vector<reals>& arguments, int calls = 1,
                     double tolerance = 0) const {
    const outcome slow = traced(arguments, calls);
    const outcome fast = compiled(arguments, calls);
    CHECK(fast.step == slow.step);
    check_near(fast.parameters, slow.parameters, tolerance);
    REQUIRE(fast.results.size() == slow.results.size());
    for (std::size_t k = 0; k < fast.results.size(); ++k)
      check_near(fast.results[k], slow.results[k], tolerance);
    return fast;
  }
  /// The graph that is traced at run time alone, held against eager mode.
  outcome traced(const std::vector<reals>& arguments, int calls = 1) const {
    const outcome o = interpreted(arguments, calls, false);
    check_eager(o, arguments, calls);
    return o;
  }

  /// The program alone, on any number of threads.
  outcome compiled(const std::vector<reals>& arguments, int calls = 1,
                   thread_pool* threads = nullptr) const {
    Cell cell;
    static_assert(program::accepted);
    parameter_store store(cell, seed_, dtype::f64);
    store.random_state()[1] = step_;
    executable<program> run(store, threads);
    outcome o;
    for (int i = 0; i < calls; ++i) {
      [&]<std::size_t... I>(std::index_sequence<I...>) { run(arguments[I].data()...); }
      (std::index_sequence_for<Arguments...>{});
    }
    constexpr std::size_t count = [] {
      std::size_t n = 0;
      for (const auto& out : program::graph.outputs) n += out.updates < 0;
      return n;
    }();
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      (o.results.push_back(copy(run.template result<int(K)>())), ...);
    }
    (std::make_index_sequence<count>{});
    return left_behind(o, store);
  }

 private:
  void check_eager(const outcome& wanted, const std::vector<reals>& arguments, int calls) const {
    const outcome eager = interpreted(arguments, calls, true);
    CHECK(eager.results == wanted.results);
    CHECK(eager.parameters == wanted.parameters);
    CHECK(eager.step == wanted.step);
  }
  outcome interpreted(const std::vector<reals>& arguments, int calls, bool eagerly) const {
    Cell cell;
    parameter_store store(cell, seed_, dtype::f64);
    store.random_state()[1] = step_;
    std::vector<tensor_ref> refs;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto* data = reinterpret_cast<const std::byte*>(arguments[i].data());
      refs.push_back({const_cast<std::byte*>(data), types[i]});
    }
    const trace_options options{true, dtype::f64};
    outcome o;
    for (int i = 0; i < calls; ++i) {
      runtime_path path({&store, nullptr, refs, {}}, &compute);
      o.results.clear();
      graph g;
      if (eagerly) {
        path.run_eagerly(cell, types, options);
        g = trace(cell, types, options);
      } else {
        g = trace(cell, types, options);
        path.run(g);
      }
      int k = 0;
      for (const auto& out : g.outputs) {
        if (out.updates >= 0) continue;
        const tensor_ref r = path.result(k++);
        o.results.emplace_back();
        for (std::int64_t j = 0; j < r.type.size(); ++j)
          o.results.back().push_back(read_element(r, j));
      }
    }
    return left_behind(o, store);
  }
  static outcome left_behind(outcome o, const parameter_store& store) {
    for (const named_parameter& p : store.entries()) {
      const tensor_ref r = store.value(p);
      for (std::int64_t j = 0; j < r.type.size(); ++j) o.parameters.push_back(read_element(r, j));
    }
    o.step = store.random_state()[1];
    return o;
  }
  template <class Values>
  static reals copy(const Values& values) {
    return {values.begin(), values.end()};
  }
  static void check_near(const reals& found, const reals& wanted, double tolerance) {
    if (tolerance == 0) {
      CHECK(found == wanted);
      return;
    }
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(tolerance));
  }

  std::uint64_t seed_;
  std::int64_t step_;
};

}  // namespace cella::test
