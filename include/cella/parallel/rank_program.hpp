// What one rank runs: its graph, planned at run time, over its parts of the inputs.
#pragma once

#include <cella/backend/host/buffer.hpp>
#include <cella/parallel/plan.hpp>
#include <cella/passes/simplify/dce.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <cella/runtime/parameters.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cella::parallel {

namespace detail {

/// Where the part of a rank begins in the whole tensor.
inline multi_index first_elements(const shape& whole, const layout& l, const device_mesh& m,
                                  int rank) {
  multi_index first{};
  for (int d = 0; d < whole.rank; ++d)
    first[std::size_t(d)] = parallel::first_of_part(whole, l, m, rank, d);
  return first;
}

}  // namespace detail

/// This rank's part of a tensor that it has as a whole.
inline void copy_part(const tensor_ref& whole, const layout& l, const device_mesh& m, int rank,
                      const tensor_ref& part) {
  cella::detail::copy_box(whole, detail::first_elements(whole.type.shape, l, m, rank), part, {},
                          part.type.shape);
}

/// The whole of a tensor of which each rank has a part: all ranks call it, with the communicator
/// of their own.
inline void gather_parts(const tensor_ref& part, const layout& l, const device_mesh& m,
                         const communicator& c, const tensor_ref& whole) {
  const communicator_scope scope(c);
  int rank = 0;
  for (int a = 0; a < m.axis_count; ++a) rank += c.groups[std::size_t(a)].coordinate * m.stride(a);
  std::vector<aligned_buffer> kept;
  tensor_ref at = part;
  layout now = l;
  for (const layout_move& s : cheapest_chain(whole.type, l, {}, m).moves) {
    now[s.mesh_axis] = replicated;
    if (m[s.mesh_axis].size == 1) continue;
    const tensor_type t = part_of(whole.type, now, m, rank);
    const std::int32_t extent = t[s.from];
    const attributes o =
        collective_options{s.mesh_axis, m[s.mesh_axis].size, s.from, s.from, extent, extent};
    kept.emplace_back(std::size_t(t.bytes()));
    const tensor_ref next{kept.back().data(), t};
    all_gather_op::compute(o, {&at, 1}, {&next, 1});
    at = next;
  }
  if (whole.type.bytes()) std::memcpy(whole.data, at.data, std::size_t(whole.type.bytes()));
}

/// The program of one rank with the memory of its inputs. Needs `cella::kernels`.
class rank_program {
 public:
  /// `plan` is one for `g` and has no fault. `c` reaches the other ranks and outlives this;
  /// `threads` may be null. The element type is that of parameters, f32 or f64.
  rank_program(const graph& g, const parallel_plan& plan, int rank, const communicator& c,
               dtype element = dtype::f32, thread_pool* threads = nullptr)
      : rank_program(g, rank_of(plan, g, rank), plan.mesh, rank, c, element, threads) {}

  /// An input of the step, of which this rank has a part.
  struct input {
    int index{};
    std::string name;
    input_role role{};
    tensor_type whole{};
    layout lies;
    /// Whether a checkpoint has it: a parameter, a state, or the optimizer's state.
    bool is_kept() const { return owned_by_cell(role) || role == input_role::slot; }
  };
  std::span<const input> inputs() const { return inputs_; }
  const device_mesh& mesh() const { return mesh_; }
  int rank() const { return rank_; }
  const communicator& ranks() const { return communicator_; }

  /// This rank's part of input `i`: of an argument, a parameter, a slot.
  const tensor_ref& part(int i) const { return parts_[std::size_t(i)]; }
  /// Gives input `i` its part of a value that this rank has as a whole.
  void set(int i, const tensor_ref& whole) {
    copy_part(whole, inputs_[std::size_t(i)].lies, mesh_, rank_, part(i));
    changed();
  }
  /// To be called when somebody has written to the parts of parameters.
  void changed() { program_.prepare_again(); }
  /// The whole value of input `i`; all ranks call it.
  void get(int i, const tensor_ref& whole) const {
    gather_parts(part(i), inputs_[std::size_t(i)].lies, mesh_, communicator_, whole);
  }
  /// The input of this name; -1 if there is none.
  int find(std::string_view name) const {
    for (const input& in : inputs_)
      if (in.name == name) return in.index;
    return -1;
  }
  /// Takes this rank's parts of all parameters and states from a store that has them as a whole.
  void load(const parameter_store& from) {
    for (const input& in : inputs_) {
      const named_parameter* p = from.find(in.name);
      if (owned_by_cell(in.role) && p) set(in.index, from.value(*p));
    }
  }
  /// Writes all parameters and states, whole, to the store of this rank; all ranks call it.
  void save(parameter_store& to) const {
    for (const input& in : inputs_) {
      const named_parameter* p = to.find(in.name);
      if (owned_by_cell(in.role) && p) get(in.index, to.value(*p));
    }
    to.touch();
  }
  /// Gives a run-time number of the step a value, if the step asks for it.
  void scalar(std::string_view name, double value) {
    if (const int i = find(name); i >= 0) write_element(part(i), 0, value);
  }
  /// One step; all ranks call it. Inputs that the program updates have their new values then.
  void operator()() {
    const communicator_scope scope(communicator_);
    program_();
  }
  /// Result `k` of the last step, which all ranks have as a whole.
  tensor_ref result(int k) const { return program_.result(k); }
  /// Prints the graph, the steps and the memory.
  void explain(std::ostream& out, std::size_t width = 100) const { program_.explain(out, width); }
  std::int64_t input_bytes() const {
    std::int64_t n = 0;
    for (const tensor_ref& t : parts_) n += t.type.bytes();
    return n;
  }

 private:
  rank_program(const graph& g, const partitioned& p, const device_mesh& m, int rank,
               const communicator& c, dtype element, thread_pool* threads)
      : mesh_(m), rank_(rank), communicator_(c), program_(dce(p.graph), element, threads) {
    for (std::size_t i = 0; i < p.inputs.size(); ++i) {
      const input_info& in = g.inputs[i];
      inputs_.push_back(
          {int(i), std::string(g.view(in.name)), in.role, g.type(g.input(int(i))), p.inputs[i]});
      const tensor_type t = p.graph.type(p.graph.input(int(i)));
      memory_.emplace_back(std::size_t(std::max<std::int64_t>(t.bytes(), 1)));
      parts_.push_back({memory_.back().data(), t});
      program_.bind(int(i), parts_.back().data);
    }
  }

  device_mesh mesh_;
  int rank_;
  const communicator& communicator_;
  std::vector<input> inputs_;
  loaded_program program_;
  std::vector<aligned_buffer> memory_;
  std::vector<tensor_ref> parts_;
};

}  // namespace cella::parallel
