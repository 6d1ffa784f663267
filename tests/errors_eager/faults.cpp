// The cells that do not compile (tests/errors), traced and computed at run time instead.
#include <doctest/doctest.h>

#include <array>
#include <cella/runtime/interpreter.hpp>
#include <cella/runtime/program.hpp>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "errors/cells/batch_size.hpp"
#include "errors/cells/branch_shapes.hpp"
#include "errors/cells/channel_count.hpp"
#include "errors/cells/condition_type.hpp"
#include "errors/cells/constant_count.hpp"
#include "errors/cells/convolution_groups.hpp"
#include "errors/cells/dropout_rate.hpp"
#include "errors/cells/element_count.hpp"
#include "errors/cells/element_type.hpp"
#include "errors/cells/embedding_index.hpp"
#include "errors/cells/foreign_parameter.hpp"
#include "errors/cells/grad_of_tensor.hpp"
#include "errors/cells/image_rank.hpp"
#include "errors/cells/inner_dimension.hpp"
#include "errors/cells/integer_literal.hpp"
#include "errors/cells/joined_extents.hpp"
#include "errors/cells/label_type.hpp"
#include "errors/cells/large_filter.hpp"
#include "errors/cells/layer_in_a_model.hpp"
#include "errors/cells/loop_state.hpp"
#include "errors/cells/loss_in_a_step.hpp"
#include "errors/cells/missing_axis.hpp"
#include "errors/cells/native_loop.hpp"
#include "errors/cells/nested_cell.hpp"
#include "errors/cells/no_broadcast.hpp"
#include "errors/cells/no_derivative.hpp"
#include "errors/cells/norm_channels.hpp"
#include "errors/cells/permutation.hpp"
#include "errors/cells/pooling_window.hpp"
#include "errors/cells/slice_bounds.hpp"
#include "errors/cells/state_shape.hpp"
#include "errors/cells/unequal_parts.hpp"
#include "errors/cells/value_in_graph.hpp"

using namespace cella;

namespace {

/// Eager mode on inputs that are zero.
class on_zeros final : public builder::evaluator {
 public:
  void evaluate(const graph& g, node_id n) override {
    for (node_id o : g.operands(n)) {
      if (values_.has(o)) continue;
      memory_.emplace_back(std::size_t(g.type(o).bytes()));
      values_.bind(o, {memory_.back().data(), g.type(o)});
    }
    values_.evaluate(g, n, &compute);
  }
  double read(node_id n, std::int64_t i) const override {
    return values_.has(n) ? read_element(values_.value(n), i) : 0;
  }

 private:
  value_store values_;
  std::deque<aligned_buffer> memory_;
};

/// What a program traces when it is compiled, at run time.
template <class Program>
struct at_run_time;
template <class Cell, bool Training, dtype Element, class... Arguments>
struct at_run_time<program<Cell, Training, Element, Arguments...>> {
  static void trace() {
    Cell cell{};
    cella::trace(cell, std::array{Arguments::type...}, {Training, Element});
  }
  static void run_eagerly() {
    Cell cell{};
    on_zeros evaluator;
    builder b;
    b.training = Training;
    b.precision = Element;
    b.eager = &evaluator;
    trace_into(b, cell, std::array{Arguments::type...});
  }
};

struct fault {
  std::string name;
  void (*trace_wrong)();
  void (*run_wrong)();
  void (*trace_mended)();
  void (*run_mended)();
};
template <class Wrong, class Mended>
fault of(const char* name) {
  return {name, at_run_time<Wrong>::trace, at_run_time<Wrong>::run_eagerly,
          at_run_time<Mended>::trace, at_run_time<Mended>::run_eagerly};
}
std::vector<fault> all_faults() {
  return {
      // clang-format off
      of<batch_size::program_of<batch_size::Wrong>, batch_size::program_of<batch_size::Mended>>("batch_size"),
      of<branch_shapes::program_of<branch_shapes::Wrong>, branch_shapes::program_of<branch_shapes::Mended>>("branch_shapes"),
      of<channel_count::program_of<channel_count::Wrong>, channel_count::program_of<channel_count::Mended>>("channel_count"),
      of<condition_type::program_of<condition_type::Wrong>, condition_type::program_of<condition_type::Mended>>("condition_type"),
      of<constant_count::program_of<constant_count::Wrong>, constant_count::program_of<constant_count::Mended>>("constant_count"),
      of<convolution_groups::program_of<convolution_groups::Wrong>, convolution_groups::program_of<convolution_groups::Mended>>("convolution_groups"),
      of<dropout_rate::program_of<dropout_rate::Wrong>, dropout_rate::program_of<dropout_rate::Mended>>("dropout_rate"),
      of<element_count::program_of<element_count::Wrong>, element_count::program_of<element_count::Mended>>("element_count"),
      of<element_type::program_of<element_type::Wrong>, element_type::program_of<element_type::Mended>>("element_type"),
      of<embedding_index::program_of<embedding_index::Wrong>, embedding_index::program_of<embedding_index::Mended>>("embedding_index"),
      of<foreign_parameter::program_of<foreign_parameter::Wrong>, foreign_parameter::program_of<foreign_parameter::Mended>>("foreign_parameter"),
      of<grad_of_tensor::program_of<grad_of_tensor::Wrong>, grad_of_tensor::program_of<grad_of_tensor::Mended>>("grad_of_tensor"),
      of<image_rank::program_of<image_rank::Wrong>, image_rank::program_of<image_rank::Mended>>("image_rank"),
      of<inner_dimension::program_of<inner_dimension::Wrong>, inner_dimension::program_of<inner_dimension::Mended>>("inner_dimension"),
      of<integer_literal::program_of<integer_literal::Wrong>, integer_literal::program_of<integer_literal::Mended>>("integer_literal"),
      of<joined_extents::program_of<joined_extents::Wrong>, joined_extents::program_of<joined_extents::Mended>>("joined_extents"),
      of<label_type::program_of<label_type::Wrong>, label_type::program_of<label_type::Mended>>("label_type"),
      of<large_filter::program_of<large_filter::Wrong>, large_filter::program_of<large_filter::Mended>>("large_filter"),
      of<layer_in_a_model::program_of<layer_in_a_model::Wrong>, layer_in_a_model::program_of<layer_in_a_model::Mended>>("layer_in_a_model"),
      of<loop_state::program_of<loop_state::Wrong>, loop_state::program_of<loop_state::Mended>>("loop_state"),
      of<loss_in_a_step::program_of<loss_in_a_step::Wrong>, loss_in_a_step::program_of<loss_in_a_step::Mended>>("loss_in_a_step"),
      of<missing_axis::program_of<missing_axis::Wrong>, missing_axis::program_of<missing_axis::Mended>>("missing_axis"),
      of<native_loop::program_of<native_loop::Wrong>, native_loop::program_of<native_loop::Mended>>("native_loop"),
      of<nested_cell::program_of<nested_cell::Wrong>, nested_cell::program_of<nested_cell::Mended>>("nested_cell"),
      of<no_broadcast::program_of<no_broadcast::Wrong>, no_broadcast::program_of<no_broadcast::Mended>>("no_broadcast"),
      of<no_derivative::program_of<no_derivative::Wrong>, no_derivative::program_of<no_derivative::Mended>>("no_derivative"),
      of<norm_channels::program_of<norm_channels::Wrong>, norm_channels::program_of<norm_channels::Mended>>("norm_channels"),
      of<permutation::program_of<permutation::Wrong>, permutation::program_of<permutation::Mended>>("permutation"),
      of<pooling_window::program_of<pooling_window::Wrong>, pooling_window::program_of<pooling_window::Mended>>("pooling_window"),
      of<slice_bounds::program_of<slice_bounds::Wrong>, slice_bounds::program_of<slice_bounds::Mended>>("slice_bounds"),
      of<state_shape::program_of<state_shape::Wrong>, state_shape::program_of<state_shape::Mended>>("state_shape"),
      of<unequal_parts::program_of<unequal_parts::Wrong>, unequal_parts::program_of<unequal_parts::Mended>>("unequal_parts"),
      of<value_in_graph::program_of<value_in_graph::Wrong>, value_in_graph::program_of<value_in_graph::Mended>>("value_in_graph"),
      // clang-format on
  };
}

std::filesystem::path folder() { return std::filesystem::path(CELLA_SOURCE_DIR) / "tests/errors"; }

/// The sentence that the compiler has to say about the wrong program.
std::string expected(const std::string& name) {
  std::ifstream file(folder() / (name + ".cpp"));
  const std::string mark = "// expect: ";
  std::string sentence;
  for (std::string line; std::getline(file, line) && line.starts_with(mark);)
    sentence += (sentence.empty() ? "" : " ") + line.substr(mark.size());
  return sentence;
}

std::string said_by(void (*f)()) {
  try {
    f();
  } catch (const model_error& e) { return e.what(); }
  return "nothing";
}

}  // namespace

TEST_CASE("a wrong cell that is traced at run time throws the sentence of its compile error") {
  for (const fault& f : all_faults()) {
    CAPTURE(f.name);
    CHECK(said_by(f.trace_wrong) == expected(f.name));
  }
}

TEST_CASE("in eager mode a wrong cell throws that sentence, too, unless values make it right") {
  for (const fault& f : all_faults()) {
    CAPTURE(f.name);
    const std::string sentence = expected(f.name);
    const bool runs = f.name == "value_in_graph" || f.name == "native_loop" ||
                      f.name == "branch_shapes";  // only one side is looked at
    CHECK(said_by(f.run_wrong) == (runs ? "nothing" : sentence));
  }
}

TEST_CASE("a mended cell is traced and computed without a fault") {
  for (const fault& f : all_faults()) {
    CAPTURE(f.name);
    CHECK(said_by(f.trace_mended) == "nothing");
    CHECK(said_by(f.run_mended) == "nothing");
  }
}

TEST_CASE("each wrong program that is compiled is checked here as well") {
  std::set<std::string> here;
  for (const fault& f : all_faults()) here.insert(f.name);
  std::set<std::string> compiled;
  for (const auto& entry : std::filesystem::directory_iterator(folder() / "cells"))
    compiled.insert(entry.path().stem().string());
  CHECK(here == compiled);
}
