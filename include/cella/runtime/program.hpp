// A program: the type that holds a cell's traced, optimized and planned graph as constants.
#pragma once

#include <cella/graph/freeze.hpp>
#include <cella/passes/pass.hpp>
#include <cella/passes/planner.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/transform/trace.hpp>

namespace cella {

/// Traces `Cell` for arguments of the types `Arguments` (each a `tensor<...>`) in constant
/// evaluation. `Training` tells the cell so; `Element` is the type of its parameters.
template <class Cell, bool Training, dtype Element, class... Arguments>
struct make_graph {
  constexpr traced_graph operator()() const {
    builder b;
    b.training = Training;
    b.precision = Element;
    Cell cell{};
    trace_into(b, cell, std::array<tensor_type, sizeof...(Arguments)>{Arguments::type...});
    if (b.failed()) return {{}, b.fault()};
    return {optimize(std::move(b.g)), {}};
  }
};

// The sentence of a fault as a template argument, so that the compiler prints it. g++ shows it
// whole; clang shows some thirty characters of an array, so there it comes in pieces.
template <std::size_t N>
struct sentence {
  char characters[N]{};
};
template <sentence... Sentence>
struct model_fault {
  static_assert(sizeof...(Sentence) == 0,
                "the model is wrong: the sentence stands in the line above");
};

namespace detail {
#if defined(__clang__)
inline constexpr std::size_t sentence_piece = 30;
#else
inline constexpr std::size_t sentence_piece = text::capacity;
#endif
template <class Make, std::size_t I>
consteval auto piece_of_fault() {
  constexpr std::string_view all = freeze_fault<Make>.view();
  constexpr std::size_t first = I * sentence_piece;
  constexpr std::size_t n =
      all.size() - first < sentence_piece ? all.size() - first : sentence_piece;
  sentence<n + 1> s;
  for (std::size_t i = 0; i < n; ++i) s.characters[i] = all[first + i];
  return s;
}
template <class Make>
consteval bool report_fault() {
  constexpr std::size_t size = freeze_fault<Make>.size();
  if constexpr (size == 0) {
    return true;
  } else {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return sizeof(model_fault<piece_of_fault<Make, I>()...>) > 0;
    }
    (std::make_index_sequence<(size + sentence_piece - 1) / sentence_piece>{});
  }
}
}  // namespace detail

/// The lanes for which programs are planned: those of the instruction set that is compiled for.
template <dtype Element>
constexpr int lanes_of() {
#if defined(__AVX512F__)
  constexpr int bytes = 64;
#elif defined(__AVX__)
  constexpr int bytes = 32;
#else
  constexpr int bytes = 16;
#endif
  return bytes / int(size_of(Element));
}

/// A compiled cell. `graph` is what is computed, `plan` how; both are compile-time constants, so
/// the size of the arena can be asserted.
template <class Cell, bool Training, dtype Element, class... Arguments>
struct program {
  using make = make_graph<Cell, Training, Element, Arguments...>;
  static constexpr bool accepted = detail::report_fault<make>();
  static constexpr dtype element_type = Element;
  static constexpr bool training = Training;
  static constexpr auto& graph = frozen<make>;

  /// Number of inputs of a role.
  static constexpr int count(input_role role) {
    int n = 0;
    for (const input_info& in : graph.inputs) n += in.role == role;
    return n;
  }
  /// Index of a run-time number of the step by name, -1 if the program does not ask for it.
  static consteval int scalar(std::string_view name) {
    for (const input_info& in : graph.inputs) {
      if (in.role == input_role::scalar && graph.view(in.name) == name) return in.index;
    }
    return -1;
  }
  /// What the parameters must be: see parameter_signature.
  static constexpr std::uint64_t signature = [] {
    parameter_signature s;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const input_info& in = graph.inputs[i];
      const bool owned = in.role == input_role::parameter || in.role == input_role::state;
      if (owned && graph.view(in.name) != "random") s.add(graph.view(in.name), graph.type(graph.input(int(i))));
    }
    return s.value;
  }();

  using plan_type = basic_plan<160, 8>;
  static constexpr plan_type plan = [] {
    if constexpr (accepted) {
      const cella::graph g = thaw(graph);
      return planner<plan_type>(g, {Element, lanes_of<Element>()}).result();
    } else {
      return plan_type{};
    }
  }();
};

/// Programs by purpose.
template <class Cell, class... Arguments>
using inference_program = program<Cell, false, dtype::f32, Arguments...>;

}  // namespace cella
